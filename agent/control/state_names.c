/* The words for states. Surprising: they are part of the API and of metrics, see openapi.yaml. */
#include "control/state_names.h"

const char *const state_names_config[] = {"waiting", "ok", "failing", "stale"};
const char *const state_names_watch[] = {"off", "connecting", "watching", "failing"};
const char *const state_names_reload[] = {"idle", "waiting", "running", "failed"};
const char *const state_names_probe[] = {"none", "waiting", "running", "passed", "failed"};
const char *const state_names_push[] = {"connecting", "connected", "silent", "refused"};
const char *const state_names_report[] = {"starting", "ok", "failing", "off"};
