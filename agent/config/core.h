/*
 * What the files of agent/config call of each other, file by file. For nobody else.
 *
 * Arrows: everything may read the facts (state.h); settle.c begins steps; step.c calls the owners,
 * and no owner calls step.c or settle.c but for config_settle() at the end of an event.
 */
#ifndef PULLET_CONFIG_CORE_H
#define PULLET_CONFIG_CORE_H

#include "config/events.h"
#include "config/state.h"

/* --- settle.c: after each event --- */

/* Begins the step that the facts ask for, one after the other; ends the run when none is. Called at
 * the end of each callback and call from outside: nothing else begins a step. */
void config_settle(struct config *c);
void settle_read_facts(struct config *c, struct situation *ret_situation);
/* The step may commit still. */
bool settle_may_commit(struct config *c);
/* Why the latest version is not current, with a sentence; REJECTION_REASONS = no decision keeps it.
 */
enum rejection_reason settle_rejection(
	const struct config *c, const struct situation *s, const char **ret_why);

/* --- step.c --- */

void step_begin(struct config *c, struct decision decision);
/* The version is a new one, which gets a state file. */
bool step_saves(const struct config *c);
/* Reads the bytes from the state directory; on either thread. 0, or -errno with a sentence. */
int step_load(struct config *c, char why[FILE_WHY]);
/* The checks but for the programs have ended: 0, or -EINVAL and the result, or another error. */
void step_validated(struct config *c, int error, const struct verify_result *result);
/* Ends the step without a verdict: its row rests until the next tick; an operator is answered. */
void step_fail(struct config *c, const char *what, const char *why);
/* Ends it well: published, or, if not, not allowed any more. */
void step_end(struct config *c, bool published);
/* Gives it up, unless it is at the disk. */
void step_drop(struct config *c);
void step_fini(struct config *c);

/* --- validation.c: the checks at work --- */

/* Checks the candidate, then calls step_validated(): before it returns, or, for a large version,
 * when its thread has ended. Until then `validating` is set, and nothing else touches the
 * candidate. */
void validation_start(struct config *c, enum verify_level level);
/* The state file of this generation is too large to be read on the loop. */
bool validation_is_large_file(const struct config *c, uint64_t generation);
/* Drops the result: the thread ends soon, and drops the step. */
void validation_give_up(struct validation *j);
/* Reads what the checks need, when it has changed. Not while they are at work. 0, or -errno with a
 * sentence. */
int validation_prepare(struct config *c, char why[FILE_WHY]);
/* Reads a version from the state directory and composes it with these overrides (NULL = none). 0,
 * or a sentence and -ENOENT, -EBADMSG (damaged, or of other layers than configured) or another
 * -errno. */
int validation_load(struct config *c, uint64_t generation, const struct ledger *overrides,
	struct candidate **ret, char why[FILE_WHY]);

/* The same with the overrides that it was published with, for ledger_free(); NULL: none, or an
 * older agent's file does not say. */
int validation_load_own(struct config *c, uint64_t generation, struct candidate **ret,
	struct ledger **ret_overrides, char why[FILE_WHY]);

/* --- publishing.c --- */

void publishing_init(struct config *c);
/* Commits and shows the candidate, on the worker if it may block; ends the step. */
void publishing_start(struct config *c);
/* dry_run.c: logs and prints what publishing_start() would do; ends the step. */
void dry_run_publish(struct config *c);
/* scrub_output.c: appends a program's output without the values of masked keys. arg: the config. */
void scrub_output(void *arg, struct buffer *out, const char *text, size_t len);

/* --- syncing.c --- */

/* Brings files of the state directory to the disk soon, unless they lie in memory; and directories
 * of published files. What had no descriptor, and directories that fail: again after the next run.
 */
enum syncing_file { SYNCING_STATE = 1, SYNCING_LEDGER = 2, SYNCING_PLACES = 4 };
void syncing_ask(struct config *c, unsigned files);

/* --- run.c: circulation --- */

void run_init(struct config *c);
/* 0 or -ENOMEM. */
int run_open(struct config *c);
void run_retire(struct config *c);
void run_fini(struct config *c);
/* Starts the run's time limit. */
void run_start_limit(struct config *c);
/* The pull's parts are one version: 0, or latest_take()'s error with a sentence. */
void run_take_version(struct config *c, int error, bool is_new, const char *why);

/* --- reason.c: why a version is published --- */

/* The next run begins: takes what was asked, else what hinted. Before the hints are read. */
void reason_begin_run(struct config *c);
/* Says in the version why the run under way, or the last one, began. */
void reason_of_pull(const struct config *c, struct version *v);
/* A pin ended, by an operator or (NULL) by itself: what it held is published for that. */
void reason_of_released(struct config *c, const char *by);
/* Says in the step's version, which is committed next, why and when. */
void reason_of_step(struct config *c);
void reason_fini(struct config *c);

/* --- assembly.c: what a pull brought becomes one version --- */

/* Calls run_take_version(): before it returns, or, for a large version, when its thread has ended.
 * Until then `assembling` is set, and nothing else touches the pull. */
void assembly_start(struct config *c);
/* Drops the result: the thread ends soon. */
void assembly_give_up(struct config *c);
void assembly_fini(struct config *c);

/* --- run_end.c --- */

/* Ends the run as failed. */
void run_fail(struct config *c, enum supervisor_outcome outcome, const char *what, const char *why);
/* From the servers to the bootstrap, or back. */
void run_swap_pulls(struct config *c);
/* What fails next is no fault of the server of the last run, nor of a disk or program here. */
void run_forget_cause(struct config *c);
/* What became of a step, for the run that it belongs to; without one a failure is reported now. */
void run_note_failure(struct config *c, const char *what, const char *why);
void run_note_rejection(struct config *c, const char *what, const char *why);
void run_note_published(struct config *c);
void run_drop_result(struct config *c);
/* Nothing is left to do: ends the run that waits for that. True: look again. */
bool run_settled(struct config *c, const struct situation *s);

/* --- schedule.c: when it begins --- */

void schedule_init(struct config *c);
/* A pull without a slot until then is rejected. */
uint64_t schedule_expiry_ms(const struct config *c);
bool schedule_find_due(const struct config *c, uint64_t *ret_due_ms);
/* Arms the timer by the trigger; withdraws a queued pull that is not due any more. */
void schedule_arm_timer(struct config *c);
/* Overrides any earlier due time. */
void schedule_set_due(struct config *c, uint64_t delay_ms);
/* The delay from the end of a run to the next. */
uint64_t schedule_next_run(struct config *c, uint64_t now_ms);
/* Bounds how long a backoff that the server did not ask for delays a pull. */
void schedule_bound_backoff(struct config *c);
/* Messages bring nothing new and the floor has grown: logged once a minute. */
void schedule_warn_floor(struct config *c, uint64_t now_ms);
/* The ledger has changed: pulls and watches end, or start again, splayed as after a sleep; the
 * snapshot says when it becomes stale. */
void run_suspension_began(struct config *c);
void run_suspension_ended(struct config *c);

/* --- watches.c --- */

void watches_start(struct config *c);
void watches_stop(struct config *c);
/* The run has followed all changes that watches reported before it began. */
void watches_confirm(struct config *c);
void watches_fill_status(const struct config *c, struct config_status *s);

/* --- rollout_gate.c: whether this host takes a new version --- */

/* 0 also when there is no rollout; else -ENOMEM. */
int rollout_gate_open(struct config *c);
void rollout_gate_close(struct config *c);
/* Asks about the latest version, when nothing else holds it. True: the run goes on when the answer
 * is there; false: nothing to ask. */
bool rollout_gate_ask(struct config *c);
/* The run's time limit has passed. */
void rollout_gate_give_up(struct config *c, const char *why);

/* --- latest.c: what the servers have --- */

/* The version that the next request is conditional on; NULL = none. */
const struct version *latest_version(const struct config *c);
/* The pull under way was conditional on this one, or on none: parts that the servers did not send
 * again are its parts. */
bool latest_is_asked(const struct config *c);
/* Its generation, when its bytes are in the store alone; 0 = they are not. */
uint64_t latest_generation(const struct config *c);
/* The bytes of latest_version(), for candidate_free(); NULL = they are in the store. */
struct candidate *latest_hold_bytes(const struct config *c);
/* The pull brought this candidate, which is taken, or error and why; of_current: with parts of the
 * current version. *ret_is_new: it differs from that. 0; or a sentence and -EPROTO (it is not what
 * the digests say that came with it) or another -errno, and what was known stays. */
int latest_take(struct config *c, struct candidate *candidate, int error, bool of_current,
	bool *ret_is_new, char why[FILE_WHY]);
/* The pull brought what is known already. */
void latest_confirm(struct config *c, bool forced);
void latest_forget(struct config *c);
void latest_set_rollout(struct config *c, enum situation_rollout word, const char *why);
/* To the step that publishes it; 0, or -errno with a sentence. */
int latest_lend(struct config *c, struct candidate **ret_candidate, char why[FILE_WHY]);
/* The programs of the step's version have ended. True: they have timed out so often in a row that
 * it is no busy host. */
bool latest_timed_out(struct config *c, bool timed_out);
/* From the step, which did not; takes the candidate. */
void latest_return(struct config *c, struct candidate *candidate);
/* Another version, or the same one, has become current; may take the replaced one. */
void latest_current_replaced(struct config *c, struct version *replaced);

/* --- decisions_file.c: the ledger's file --- */

/* Reads the ledger, if it was not. 0, or -errno with a sentence. */
int decisions_open(struct config *c, char why[FILE_WHY]);
/* Writes the ledger, which has changed; when that fails, again at the next run. 0, or -errno, which
 * was logged. */
int decisions_save(struct config *c);
/* The same for an operator: -EIO with a sentence when it is not written. */
int decisions_save_asked(struct config *c, char why[FILE_WHY]);
/* Forgets that it could not be saved. */
void decisions_forget_unsaved(struct config *c);

/* --- decisions.c: ledger and request --- */

void decisions_init(struct config *c);
/* Lets what is in the ledger expire from now on. */
void decisions_begin(struct config *c);
void decisions_fini(struct config *c);
/* Sets the timer for what expires next in the ledger. */
void decisions_await_expiry(struct config *c);
void decisions_expire(struct config *c);
/* A ledger with the same overrides and nothing else, for ledger_free(); NULL when there is no
 * memory. */
struct ledger *decisions_copy_overrides(const struct ledger *l);
bool decisions_overrides_differ(const struct config *c);
/* Brings the rules that verdicts are found by up to date: reads the schema if it has changed, and
 * drops verdicts about signatures that a clock made which was ahead. True: they are others. Not
 * while a version is validated. */
bool decisions_read_rules(struct config *c);
/* About these bytes, by the rules of now. */
const struct ledger_verdict *decisions_find_verdict(const struct config *c, const char *sha256);
enum situation_verdict decisions_verdict(const struct config *c, const char *sha256);
void decisions_reject(struct config *c, const char *sha256, const char *check, const char *rules,
	const char *why);
/* The overrides have changed: versions rejected with the old ones are validated again. True: the
 * ledger has changed. */
bool decisions_forgive_checks(struct config *c);
/* A version that this row publishes needs no probe: it, or what it goes back to, was good. */
bool decisions_prove(const struct config *c, enum decide_row row);
/* What the state file of the step's version says besides its bytes. 0 or -ENOMEM. */
int decisions_write(struct config *c);
/* The step's version is visible: the ledger follows. Does not save it. */
void decisions_record(struct config *c, uint64_t generation, const char *sha256);
/* Takes over what a state file decided, if it is newer than the ledger. 1: the ledger has changed;
 * 0, or -errno, which was logged. */
int decisions_adopt(struct config *c, const struct version *v);
/* A pin on bytes that did not become visible is about the current ones. */
void decisions_return_pin(struct config *c, const char *sha256);
/* The pinned bytes cannot be current: logs what, and unpins, so that readers have a value. */
void decisions_drop_pin(struct config *c, const char *what);

/* --- request.c --- */

void request_drop(struct config *c);
void request_fini(struct request *q);
/* Ends the operator's request, if there is one; why NULL = it is published. Wakes its waiters. */
void request_answer(struct config *c, const char *why);
/* Ends a rollback of a version that was replaced meanwhile. */
bool request_supersede(struct config *c);
/* The config is removed: ends a request that the worker is not publishing yet. */
void request_cancel(struct config *c);

/* --- operate.c --- */

/* 0, or -ENODATA with a sentence: nothing is published. */
int operate_check_published(const struct config *c, char why[FILE_WHY]);
/* 0, or -ENOTSUP or -EINVAL with a sentence: there cannot be such a key. */
int operate_check_key(const struct config *c, const char *key, char why[FILE_WHY]);

/* --- current.c: what readers see --- */

void current_init(struct config *c);
/* Opens store, ledger, file and snapshot as far as they are not open, and watches them for drift.
 */
int current_open(struct config *c, char why[FILE_WHY]);
/* Whether errors of the state directory that may pass are waited for; the tenth run does not. With
 * --once they are its failure. */
bool current_is_patient(const struct config *c);
/* Makes the last known good visible, if that was not done yet. */
void current_start(struct config *c);
/* It is visible: from now on the application is notified. */
void current_started(struct config *c);
void current_retire(struct config *c);
void current_fini(struct config *c);
/* A pull has ended: the places of the current version are looked at next, which inotify may not
 * have seen change (a mount, another directory under the name). 0, or -errno with a
 * sentence. */
int current_confirm(struct config *c, char why[FILE_WHY]);
/* Looks at the published files, if somebody may have changed them. */
void current_look(struct config *c);
void current_log_repair(struct config *c);
/* Makes the step's version the current one. */
void current_replace(struct config *c);
/* The stored bytes are unavailable: the next request asks for all, and publishes it again. */
void current_forget(struct config *c);
bool current_settings_differ(const struct config *c);
/* The generation that a probe's rollback goes to: the proven one if it is kept, else the newest
 * before that did not fail its probe. 0 = none. Reads state files. */
uint64_t current_find_older(struct config *c);
/* Notes it for the facts, where the current version is harmful. Not while the worker publishes. */
void current_read_older(struct config *c);
/* The version is committed, but not visible. */
void current_note_saved(struct config *c, const struct version *v);
void current_forget_saved(struct config *c);
/* follow.c: notifies and probes from now on. */
void current_start_notify(struct config *c);

/* --- status.c --- */

/* Where the current version cannot be replaced, at the start as at every run. */
#define CONFIG_CANNOT_PUBLISH "cannot publish here: trying again at every pull"
/* Notes the failure of a run or a step for the status; logs it once per cause, then once a minute.
 */
void config_report_failure(struct config *c, const char *what, const char *why);
/* What failed last is over. */
void status_recover(struct config *c);
/* The servers have confirmed the current version, or a decision holds theirs. */
void status_confirm(struct config *c);
/* The config does not count any more among those that fail for their server's sake. */
void status_forget_outage(struct config *c);
/* How long after the last confirmation the current version is stale; CONFIG_NEVER = never. */
#define CONFIG_NEVER UINT64_MAX
uint64_t config_stale_ms(const struct config *c);
/* The same for the snapshot's readers: a signature's expiry may come sooner. */
uint64_t status_readers_stale_ms(const struct config *c);

/* --- life.c --- */

/* What waiters are after beside a run; no run has these numbers. */
#define CONFIG_ANY (UINT64_MAX - 1)
#define CONFIG_CHANGE UINT64_MAX
/* Wakes waiters registered for runs first..last. */
void config_wake_waiters(struct config *c, uint64_t first, uint64_t last);
/* Ends config_retire() after the last job of a worker. The caller's last call: c may be gone then.
 */
void config_finish_retiring(struct config *c);

/* --- inspect.c: what inspect_key.c and inspect_change.c share with it --- */

struct inspection;

/* 0, or the buffer's error with a sentence. */
int inspect_check_room(const struct buffer *out, char why[FILE_WHY]);
/* 0, or -ENODATA with a sentence: nothing is published. */
int inspect_check_published(const struct inspection *i, char why[FILE_WHY]);
/* Members of an object: generation, published_ms, ... */
void inspect_write_facts(struct buffer *out, const struct version *v);
void inspect_write_override(struct buffer *out, const struct ledger_override *o);
/* A member: the value at key, without what is masked. */
void inspect_write_value(struct buffer *out, const char *name, char *const *mask, const char *key,
	const struct node *value);
/* The patterns of masked keys; without values all are masked. */
char *const *inspect_mask(const struct config *c, bool values);

/* --- tasks.c: questions about versions --- */

/* Drops those that have not begun. */
void tasks_drop(struct config *c);
/* Ends all: the thread is gone. */
void tasks_end(struct config *c);

#endif
