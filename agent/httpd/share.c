/* The arithmetic of shares. Surprising: a user without any gets one in any case, so that a small
 * total, or one large answer, shuts no user out. */
#include "httpd/share.h"

static bool exceeds_share(size_t held, size_t amount, size_t limit)
{
	return held && (held >= limit || amount > limit - held);
}

void share_add(
	struct share_held *held, const struct peer *asks, const struct peer *holder, size_t amount)
{
	if (holder->local == asks->local && holder->uid == asks->uid)
		held->user += amount;
	if (holder->right == RIGHT_READ)
		held->readers += amount;
	if (holder->right <= RIGHT_OPERATE)
		held->others += amount;
	held->all += amount;
}

enum share share_check(
	size_t total, const struct peer *asks, const struct share_held *held, size_t amount)
{
	if (asks->right == RIGHT_OWN)
		return held->user && exceeds_share(held->all, amount, total) ? SHARE_OF_ALL
									     : SHARE_ROOM;
	if (exceeds_share(held->user, amount, total / 4))
		return SHARE_OF_USER;
	if (asks->right == RIGHT_READ && exceeds_share(held->readers, amount, total / 8 * 5))
		return SHARE_OF_CLASS;
	return exceeds_share(held->others, amount, total / 4 * 3) ? SHARE_OF_CLASS : SHARE_ROOM;
}
