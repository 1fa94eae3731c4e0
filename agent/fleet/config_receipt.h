/*
 * The receipt of one config: its status in one word and a sentence.
 *
 * Threads: the loop's. Ownership: ret points into texts, and to the config's status.
 */
#ifndef PULLET_CONFIG_RECEIPT_H
#define PULLET_CONFIG_RECEIPT_H

#include "config/config.h"
#include "fleet/receipt.h"

/* Fills in all but since_ms. */
void config_receipt_fill(
	struct config *c, struct receipt_config *ret_receipt, struct receipt_texts *ret_texts);

#endif
