/*
 * The words for states, by their enums: the same in the status and in the metrics.
 */
#ifndef PULLET_STATE_NAMES_H
#define PULLET_STATE_NAMES_H

extern const char *const state_names_config[4]; /* config_status.state, which is a word already */
extern const char *const state_names_watch[4];
extern const char *const state_names_reload[4];
extern const char *const state_names_probe[5];
extern const char *const state_names_push[4];
extern const char *const state_names_report[4];

#endif
