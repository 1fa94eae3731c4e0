/*
 * Answers to verdicts. Surprising: a 304 counts only where the request named a version, so that it
 * never means one that the agent does not have.
 */
#include "pull/kinds/answer.h"

#include <stdio.h>
#include <string.h>

struct meaning {
	long first, last;
	enum kind_cause cause;
	const char *advice;
};

static const struct meaning *status_meaning(long status)
{
	static const struct meaning table[] = {
		{100, 199, KIND_CAUSE_ANSWER, "the server stopped half-way"},
		{200, 299, KIND_CAUSE_ANSWER, "only 200 and 304 are taken"},
		{304, 304, KIND_CAUSE_ANSWER,
			"but nothing was asked for conditionally: the server is broken"},
		{300, 399, KIND_CAUSE_ANSWER,
			"a redirect is not followed: put the final address into the configuration"},
		{400, 400, KIND_CAUSE_ANSWER,
			"the request is wrong for it: https:// in place of http://, a client "
			"certificate (tls:), or the path; its log says which"},
		{401, 401, KIND_CAUSE_FORBIDDEN,
			"the server wants credentials: set auth:, or correct them"},
		{403, 403, KIND_CAUSE_FORBIDDEN,
			"the server forbids it: check auth: and the rights of its user"},
		{404, 404, KIND_CAUSE_NOT_FOUND, "there is no such document: check the path"},
		{410, 410, KIND_CAUSE_NOT_FOUND, "the document was removed"},
		{421, 421, KIND_CAUSE_ANSWER,
			"the server does not go by the name in the address: correct that, or let "
			"the server know it (pullet serve: --http-name)"},
		{429, 429, KIND_CAUSE_OVERLOADED, "the server is overloaded"},
		{503, 503, KIND_CAUSE_OVERLOADED,
			"the server is overloaded or down for maintenance"},
		{502, 502, KIND_CAUSE_UNREACHABLE, "the server failed: look at what is behind it"},
		{504, 504, KIND_CAUSE_UNREACHABLE, "the server failed: look at what is behind it"},
		{500, 599, KIND_CAUSE_ANSWER, "the server failed: look at its log"},
		{0, 999, KIND_CAUSE_ANSWER, "not an answer that holds a document"},
	};
	size_t i = 0;

	while (status < table[i].first || status > table[i].last)
		i++;
	return &table[i];
}

/* The tag of a 304 is that of a 200 at this moment (RFC 9110, 15.4.5); the weak form of a tag names
 * the same version. */
static bool names_another(const char *etag, const struct part *held)
{
	return held && kind_is_etag(etag) && kind_is_etag(held->etag) &&
	       strcmp(strchr(etag, '"'), strchr(held->etag, '"')) != 0;
}

static enum kind_verdict check_status(const struct kind_place *place,
	const struct http_client_response *response, bool conditional, struct kind_answer *ret)
{
	const long status = response->status;
	const struct meaning *m = status_meaning(status);

	if (status == 304 && conditional && !names_another(response->etag, kind_held(place)))
		return KIND_SAME;
	ret->cause = m->cause;
	if (status == 304 && conditional) {
		snprintf(ret->why, FILE_WHY,
			"the server answered 304, with the ETag of another version than it was "
			"asked about");
		return KIND_WHOLE;
	}
	snprintf(ret->why, FILE_WHY, "the server answered %ld: %s", status, m->advice);
	/* what is before @, or in the query, may be a secret */
	if (status / 100 == 3 && response->location[0] && !strchr(response->location, '@'))
		snprintf(ret->why, FILE_WHY, "the server answered %ld: %s (%.*s)", status,
			m->advice, (int)strcspn(response->location, "?#"), response->location);
	return m->cause == KIND_CAUSE_NOT_FOUND ? KIND_ABSENT : KIND_FAILED;
}

static enum kind_cause result_cause(enum http_client_result result)
{
	static const enum kind_cause causes[HTTP_CLIENT_RESULTS] = {
		[HTTP_CLIENT_OK] = KIND_CAUSE_NONE,
		[HTTP_CLIENT_TIMEOUT] = KIND_CAUSE_TIMEOUT,
		[HTTP_CLIENT_REFUSED] = KIND_CAUSE_UNREACHABLE,
		[HTTP_CLIENT_NETWORK] = KIND_CAUSE_UNREACHABLE,
		[HTTP_CLIENT_TLS] = KIND_CAUSE_UNREACHABLE,
		[HTTP_CLIENT_HOST] = KIND_CAUSE_HOST,
		[HTTP_CLIENT_TOO_LARGE] = KIND_CAUSE_ANSWER,
		[HTTP_CLIENT_CODING] = KIND_CAUSE_ANSWER,
		[HTTP_CLIENT_PROTOCOL] = KIND_CAUSE_ANSWER,
	};

	return causes[result];
}

enum kind_verdict answer_check(const struct kind_place *place,
	const struct http_client_response *response, bool conditional, struct kind_answer *ret)
{
	enum kind_verdict verdict;
	char note[INTEGRITY_WHY] = "";

	ret->cause = result_cause(response->result);
	if (response->result != HTTP_CLIENT_OK)
		return kind_fail(ret, ret->cause, "%s", response->message);
	verdict = kind_of(place->server)->read(place, response, ret);
	if (verdict == KIND_USUAL)
		verdict = check_status(place, response, conditional, ret);
	if (verdict == KIND_NEW &&
		integrity_check(response, ret->mismatch, ret->note[0] ? note : ret->note) == 0)
		ret->mismatch[0] = '\0';
	if (verdict == KIND_ABSENT)
		ret->cause = KIND_CAUSE_NOT_FOUND;
	return verdict;
}
