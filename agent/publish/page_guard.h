/*
 * Loads and stores in a mapped page whose file somebody may cut short meanwhile: that would be
 * SIGBUS, and the end of the process. Between page_guard_begin() and page_guard_end() the lost
 * memory is replaced by zeros, which nobody else sees.
 *
 * Threads: any; a thread guards one page at a time.
 */
#ifndef PULLET_PAGE_GUARD_H
#define PULLET_PAGE_GUARD_H

#include <stdbool.h>

/* Guards PAGE_SIZE bytes that are mapped at `page`. */
void page_guard_begin(void *page);
/* False when its memory was lost since it was mapped. */
bool page_guard_end(void);

#endif
