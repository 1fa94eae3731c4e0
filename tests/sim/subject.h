/*
 * A config of the agent under test, and what a reader may see of it: the oracle of P1 to P7.
 *
 * Documents name themselves and their version in each line (site.h), so every text that a reader
 * finds says what it is made of. What the servers ever had is known, too; so is what an operator,
 * a probe or a power cut may have changed.
 */
#ifndef SIM_SUBJECT_H
#define SIM_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/host.h"
#include "tests/sim/site.h"

#define SUBJECT_MAX_LAYERS 4
#define SUBJECT_OVERRIDES 4 /* keys: over.k0... */

enum subject_place { PLACE_NONE, PLACE_FILE, PLACE_SET };

struct pullet;

/* Version numbers of the layers; 0 = the layer is absent. */
struct sight {
	uint64_t numbers[SUBJECT_MAX_LAYERS];
	bool there;
};

/* What a configuration may say of it beside where it goes and which programs there are. */
struct features {
	enum { TYPE_DEFAULT, TYPE_JSON, TYPE_BYTES } type;
	enum { DRIFT_IS_HEALED, DRIFT_IS_REPORTED, DRIFT_IS_LEFT } drift;
	bool masked, schema, owned, required, rules, shared_topic, is_signed, has_rev, bootstrap,
		rollout, consul, etcd;
	unsigned mode, max_changes, debounce_ms, splay_ms, min_interval_ms, spread_ms;
};

struct subject {
	char name[16], path[64];
	struct host *host;
	unsigned place_number; /* in the configuration */
	/* what it is */
	struct site_document *layers[SUBJECT_MAX_LAYERS];
	size_t layer_count;
	enum subject_place place;
	bool snapshot, on_disk, strict, guarded, checked, reloaded, probed, formatted, watched;
	bool clock_steps; /* decisions may expire at any moment */
	bool removed;     /* from the configuration, by a reload */
	unsigned history;
	uint64_t interval_ms, timeout_ms;
	const char *format;
	struct features features;
	const char *runtime_dir; /* NULL = /run/pullet */
	/* what readers saw */
	bool dirty;
	struct sight last, settled; /* settled: when it had not changed for a second */
	uint64_t changed_us;
	uint64_t generation, settled_generation; /* of the snapshot */
	struct sight snapshot_last;
	struct pullet *reader;
	/* what is allowed */
	bool may_go_back;     /* an operator, a probe or a server asked for it, once or more */
	bool foreign;         /* somebody else wrote the file, and it is not yet healed */
	uint64_t repaired_us; /* then it was healed the last time; 0 = never */
	bool forced;          /* the guard was skipped */
	bool damaged;         /* somebody touched its state, once or more */
	/* Pinned or suspended since then (0 = no), until then: nothing of the servers may become
	 * visible. at_hold: what it shows then, taken when what was under way has ended. */
	uint64_t held_us, held_until_us;
	bool pinned; /* by a pin, else by a suspension */
	struct sight at_hold;
	/* An operator's rollback: what it replaced, which may not come again. */
	uint64_t rolling_us; /* 0 = none is under way */
	struct sight rolling, rolled_back;
	bool may_be_lost; /* the agent said that a power cut may lose it */
	bool unsaved;     /* an order was answered "done, but not saved" */
	/* Decisions that the agent showed as in force, until then (wall clock); 0 = none. */
	int64_t pin_until_ms, override_until_ms[SUBJECT_OVERRIDES];
	uint64_t stuck_us; /* it has made no progress since then; 0 = it does */
	uint64_t observed; /* times */
};

/* The first flaw of a life; "" = none yet. */
extern char subject_flaw[256];
void subject_report_flaw(const char *format, ...) __attribute__((format(printf, 1, 2)));

const char *subject_runtime_dir(const struct subject *s);
/* Looks at all that a reader can see of it, if something may have changed. */
void subject_observe(struct subject *s);
/* The power failed: what was not settled may be gone. Its readers are gone. */
void subject_power_cut(struct subject *s);
/* The agent has started: what it shows is not older than what was settled. */
void subject_check_start(struct subject *s);
/* The key of that override is in what is published. */
bool subject_has_override(const struct subject *s, size_t i);
bool subject_same_sight(const struct sight *a, const struct sight *b);
bool subject_is_newest(const struct subject *s);
/* All is healed, and time has passed: it must be the servers' newest. */
void subject_check_end(struct subject *s);
/* The version is visible. */
bool subject_shows(const struct subject *s, size_t layer, uint64_t number);
void subject_close(struct subject *s);

#endif
