/* The files beside this one, as they are. Surprising: the assembler reads them, so that nothing has
 * to be generated; make runs it in the source directory. */
#include "control/page/page.h"

#include <string.h>

#define EMBED(name, file)                                                                          \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #name ", " #name "_end\n.hidden " #name ", " #name "_end\n" #name       \
		":\n.incbin \"agent/control/page/" file "\"\n" #name                               \
		"_end:\n.byte 0\n.popsection\n");                                                  \
	extern const char name[], name##_end[]

EMBED(page_html, "index.html");
EMBED(page_css, "page.css");
EMBED(page_js, "page.js");
EMBED(page_detail, "detail.js");

const struct page *page_find(const char *path)
{
	static const struct page pages[] = {
		{"/", "text/html; charset=utf-8", page_html, page_html_end},
		{"/page.css", "text/css; charset=utf-8", page_css, page_css_end},
		{"/page.js", "text/javascript; charset=utf-8", page_js, page_js_end},
		{"/detail.js", "text/javascript; charset=utf-8", page_detail, page_detail_end},
	};

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (strcmp(pages[i].path, path) == 0)
			return &pages[i];
	return NULL;
}
