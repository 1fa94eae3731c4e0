/*
 * The table that decides: each row, where it comes among the others, gates, outcomes, names. All
 * combinations of facts, and all worlds, are the model's (tests/model/core_main.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/decide.h"

/* Nothing is to be done: the server's version is current. */
static const struct situation quiet = {
	.current = CURRENT_GOOD,
	.older = OLDER_THERE,
	.latest = LATEST_SAME,
};
/* Each row has something to do. */
static const struct situation busy = {
	.request = REQUEST_ROLL_BACK,
	.saved = SAVED_WANTED,
	.current = CURRENT_HARMFUL,
	.older = OLDER_THERE,
	.latest = LATEST_NEW,
	.overrides = OVERRIDES_OTHER,
	.settings = SETTINGS_OTHER,
	.place = PLACE_CHANGED,
	.drift = DRIFT_HEAL,
};

#define assert_row(s, expected) assert_int_equal(decide(s).row, expected)
/* The row holds, and no longer when one fact has this value. */
#define assert_needs(s, row, fact, value)                                                          \
	do {                                                                                       \
		struct situation without = (s);                                                    \
                                                                                                   \
		assert_row(&(s), row);                                                             \
		without.fact = (value);                                                            \
		assert_row(&without, ROW_NONE);                                                    \
	} while (0)

/* ---- rows ---- */

static void table__without_anything_to_do__begins_nothing(void **state)
{
	struct decision d = decide(&quiet);

	(void)state;
	assert_int_equal(d.row, ROW_NONE);
	assert_int_equal(d.action, ACTION_NONE);
}

static void table__where_all_rows_hold__takes_them_in_order(void **state)
{
	static const struct {
		enum decide_action action;
		enum decide_origin origin;
	} expected[ROWS] = {
		[ROW_OPERATOR_ROLLS_BACK] = {ACTION_ROLL_BACK, ORIGIN_OPERATOR},
		[ROW_OPERATOR_OVERRIDES] = {ACTION_RECOMPOSE, ORIGIN_OPERATOR},
		[ROW_SAVED_IS_SHOWN] = {ACTION_SHOW, ORIGIN_START},
		[ROW_HARMFUL_IS_ROLLED_BACK] = {ACTION_ROLL_BACK, ORIGIN_PROBE},
		[ROW_LATEST_IS_PUBLISHED] = {ACTION_PUBLISH, ORIGIN_PULL},
		[ROW_OTHER_OVERRIDES] = {ACTION_RECOMPOSE, ORIGIN_OVERRIDES},
		[ROW_OTHER_SETTINGS] = {ACTION_RECOMPOSE, ORIGIN_START},
		[ROW_CHANGED_BY_OTHERS] = {ACTION_HEAL, ORIGIN_HEAL},
	};
	struct situation s = busy;

	(void)state;
	for (unsigned row = ROW_NONE + 1; row < ROWS; row++) {
		struct decision d;

		if (row == ROW_OPERATOR_OVERRIDES)
			s.request = REQUEST_OVERRIDES;
		d = decide(&s);
		assert_int_equal(d.row, row);
		assert_int_equal(d.action, expected[row].action);
		assert_int_equal(d.origin, expected[row].origin);
		s.resting |= 1u << row;
	}
	assert_row(&s, ROW_NONE);
}

static void table__while_the_config_retires__begins_nothing(void **state)
{
	struct situation s = busy;

	(void)state;
	s.mode = MODE_RETIRING;
	assert_row(&s, ROW_NONE);
}

static void row__that_rests__leaves_the_others_to_begin(void **state)
{
	struct situation s = busy;

	(void)state;
	s.resting = 1u << ROW_OPERATOR_ROLLS_BACK | 1u << ROW_HARMFUL_IS_ROLLED_BACK;
	assert_row(&s, ROW_SAVED_IS_SHOWN);
	s.saved = SAVED_NONE;
	assert_row(&s, ROW_LATEST_IS_PUBLISHED);
}

static void request__of_an_operator__begins_whatever_else_is_so(void **state)
{
	struct situation s = busy;

	(void)state;
	s.pin = PIN_SET;
	s.verdict = VERDICT_REJECTED;
	assert_row(&s, ROW_OPERATOR_ROLLS_BACK);
	s.request = REQUEST_OVERRIDES;
	assert_row(&s, ROW_OPERATOR_OVERRIDES);
	s = (struct situation){.request = REQUEST_OVERRIDES};
	assert_row(&s, ROW_OPERATOR_OVERRIDES);
}

static void saved__is_shown_unless_it_is_held_or_late(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.saved = SAVED_WANTED;
	assert_needs(s, ROW_SAVED_IS_SHOWN, saved, SAVED_NONE);
	assert_needs(s, ROW_SAVED_IS_SHOWN, saved, SAVED_HELD);
	assert_needs(s, ROW_SAVED_IS_SHOWN, saved, SAVED_LATE);
	s.current = CURRENT_NONE;
	assert_row(&s, ROW_SAVED_IS_SHOWN);
}

static void harmful__is_rolled_back_to_an_older_one_unless_pinned(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.current = CURRENT_HARMFUL;
	assert_needs(s, ROW_HARMFUL_IS_ROLLED_BACK, current, CURRENT_GOOD);
	assert_needs(s, ROW_HARMFUL_IS_ROLLED_BACK, older, OLDER_NONE);
	assert_needs(s, ROW_HARMFUL_IS_ROLLED_BACK, pin, PIN_SET);
}

static void latest__that_is_new_and_not_held__is_published(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.latest = LATEST_NEW;
	assert_needs(s, ROW_LATEST_IS_PUBLISHED, latest, LATEST_SAME);
	assert_needs(s, ROW_LATEST_IS_PUBLISHED, latest, LATEST_UNKNOWN);
	assert_needs(s, ROW_LATEST_IS_PUBLISHED, pin, PIN_SET);
	assert_needs(s, ROW_LATEST_IS_PUBLISHED, verdict, VERDICT_REJECTED);
	assert_needs(s, ROW_LATEST_IS_PUBLISHED, rollout, ROLLOUT_OUT);
}

static void current__with_other_overrides_or_settings__is_composed_again(void **state)
{
	struct situation s = quiet, t = quiet;

	(void)state;
	s.overrides = OVERRIDES_OTHER;
	assert_needs(s, ROW_OTHER_OVERRIDES, overrides, OVERRIDES_SAME);
	assert_needs(s, ROW_OTHER_OVERRIDES, current, CURRENT_NONE);
	t.settings = SETTINGS_OTHER;
	assert_needs(t, ROW_OTHER_SETTINGS, settings, SETTINGS_SAME);
	assert_needs(t, ROW_OTHER_SETTINGS, current, CURRENT_NONE);
	t.pin = PIN_SET; /* the bytes stay */
	assert_row(&t, ROW_OTHER_SETTINGS);
}

static void files__that_somebody_changed__are_restored_where_that_is_set(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.place = PLACE_CHANGED;
	assert_needs(s, ROW_CHANGED_BY_OTHERS, place, PLACE_AS_PUBLISHED);
	assert_needs(s, ROW_CHANGED_BY_OTHERS, drift, DRIFT_REPORT);
	assert_needs(s, ROW_CHANGED_BY_OTHERS, drift, DRIFT_LEAVE);
	assert_needs(s, ROW_CHANGED_BY_OTHERS, current, CURRENT_NONE);
}

/* ---- gates ---- */

static void gate__says_verdict_before_pin_before_rollout(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.latest = LATEST_NEW;
	s.verdict = VERDICT_OPERATOR;
	s.pin = PIN_SET;
	s.rollout = ROLLOUT_OUT;
	assert_int_equal(decide_gate(&s), GATE_VERDICT);
	s.verdict = VERDICT_FREE;
	assert_int_equal(decide_gate(&s), GATE_PIN);
	s.pin = PIN_NONE;
	assert_int_equal(decide_gate(&s), GATE_ROLLOUT);
	s.rollout = ROLLOUT_IN;
	assert_int_equal(decide_gate(&s), GATE_OPEN);
}

static void gate__opened_by_force__is_closed_by_a_pin_only(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.latest = LATEST_NEW;
	s.verdict = VERDICT_PROBE;
	s.rollout = ROLLOUT_OUT;
	s.force = FORCE_ASKED;
	assert_int_equal(decide_gate(&s), GATE_OPEN);
	assert_row(&s, ROW_LATEST_IS_PUBLISHED);
	s.pin = PIN_SET;
	assert_int_equal(decide_gate(&s), GATE_PIN);
}

static void gate__of_a_host_without_a_version__does_not_wait_for_its_rollout(void **state)
{
	struct situation s = {.latest = LATEST_NEW, .rollout = ROLLOUT_OUT};

	(void)state;
	assert_int_equal(decide_gate(&s), GATE_OPEN);
	s.current = CURRENT_HARMFUL;
	assert_int_equal(decide_gate(&s), GATE_ROLLOUT);
}

static void commit__asks_the_gate_of_its_origin_again(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.latest = LATEST_NEW;
	for (unsigned origin = 0; origin < ORIGINS; origin++)
		assert_true(decide_may_commit(&s, (enum decide_origin)origin));
	s.pin = PIN_SET;
	for (unsigned origin = 0; origin < ORIGINS; origin++)
		assert_int_equal(decide_may_commit(&s, (enum decide_origin)origin),
			origin != ORIGIN_PULL && origin != ORIGIN_PROBE);
	s.pin = PIN_NONE;
	s.verdict = VERDICT_REJECTED;
	assert_false(decide_may_commit(&s, ORIGIN_PULL));
	assert_true(decide_may_commit(&s, ORIGIN_PROBE));
}

static void commit__that_is_allowed_but_not_the_first_choice__goes_on(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.latest = LATEST_NEW;
	s.request = REQUEST_ROLL_BACK;
	assert_row(&s, ROW_OPERATOR_ROLLS_BACK);
	assert_true(decide_may_commit(&s, ORIGIN_PULL));
}

/* ---- outcomes ---- */

static void outcome__of_what_a_decision_holds__is_no_failure(void **state)
{
	struct situation s = quiet;

	(void)state;
	assert_int_equal(decide_outcome(&s), OUTCOME_CURRENT);
	s.latest = LATEST_UNKNOWN;
	s.pin = PIN_SET;
	assert_int_equal(decide_outcome(&s), OUTCOME_CURRENT);
	s.latest = LATEST_NEW;
	assert_int_equal(decide_outcome(&s), OUTCOME_HELD);
	s.pin = PIN_NONE;
	assert_int_equal(decide_outcome(&s), OUTCOME_CURRENT); /* it is about to be */
	s.verdict = VERDICT_OPERATOR;
	assert_int_equal(decide_outcome(&s), OUTCOME_HELD);
	s.verdict = VERDICT_FREE;
	s.rollout = ROLLOUT_OUT;
	assert_int_equal(decide_outcome(&s), OUTCOME_HELD);
	s.rollout = ROLLOUT_IN;
	assert_int_equal(decide_outcome(&s), OUTCOME_CURRENT);
}

static void outcome__of_what_is_bad__is_a_failure_even_if_it_is_pinned(void **state)
{
	struct situation s = quiet;

	(void)state;
	s.latest = LATEST_NEW;
	s.pin = PIN_SET;
	s.verdict = VERDICT_REJECTED;
	assert_int_equal(decide_outcome(&s), OUTCOME_FAILING);
	s.verdict = VERDICT_PROBE;
	assert_int_equal(decide_outcome(&s), OUTCOME_FAILING);
}

/* ---- names ---- */

static void facts__are_read_and_set_by_their_names(void **state)
{
	struct situation s = {0}, expected = {.mode = MODE_RETIRING, .drift = DRIFT_LEAVE};
	unsigned long combinations = 1;

	(void)state;
	for (size_t i = 0; i < SITUATION_FACTS; i++) {
		const struct situation_fact *fact = &situation_facts[i];

		combinations *= fact->count;
		for (unsigned value = 0; value < fact->count; value++) {
			assert_non_null(fact->values[value]);
			situation_set(&s, fact, value);
			assert_int_equal(situation_value(&s, fact), value);
		}
		situation_set(&s, fact, 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(fact->name, situation_facts[k].name);
	}
	assert_int_equal(combinations, 497664);
	assert_string_equal(situation_facts[0].name, "mode");
	situation_set(&s, &situation_facts[0], MODE_RETIRING);
	situation_set(&s, &situation_facts[SITUATION_FACTS - 1], DRIFT_LEAVE);
	assert_memory_equal(&s, &expected, sizeof(s));
	assert_string_equal(situation_facts[0].values[MODE_RETIRING], "retiring");
	assert_string_equal(situation_facts[SITUATION_FACTS - 1].values[DRIFT_LEAVE], "leave");
}

static void names__of_rows_actions_and_origins__are_all_different(void **state)
{
	(void)state;
	for (unsigned a = 0; a < ROWS; a++)
		for (unsigned b = 0; b < a; b++) {
			enum decide_row one = (enum decide_row)a, other = (enum decide_row)b;

			assert_string_not_equal(decide_row_name(one), decide_row_name(other));
			assert_string_not_equal(decide_row_text(one), decide_row_text(other));
		}
	for (unsigned a = 0; a < ACTIONS; a++)
		for (unsigned b = 0; b < a; b++)
			assert_string_not_equal(decide_action_name((enum decide_action)a),
				decide_action_name((enum decide_action)b));
	for (unsigned a = 0; a < ORIGINS; a++)
		for (unsigned b = 0; b < a; b++)
			assert_string_not_equal(decide_origin_name((enum decide_origin)a),
				decide_origin_name((enum decide_origin)b));
	assert_string_equal(decide_row_name(ROW_LATEST_IS_PUBLISHED), "latest_is_published");
	assert_string_equal(decide_action_name(ACTION_ROLL_BACK), "roll back");
	assert_string_equal(decide_origin_name(ORIGIN_OPERATOR), "operator");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__without_anything_to_do__begins_nothing),
		cmocka_unit_test(table__where_all_rows_hold__takes_them_in_order),
		cmocka_unit_test(table__while_the_config_retires__begins_nothing),
		cmocka_unit_test(row__that_rests__leaves_the_others_to_begin),
		cmocka_unit_test(request__of_an_operator__begins_whatever_else_is_so),
		cmocka_unit_test(saved__is_shown_unless_it_is_held_or_late),
		cmocka_unit_test(harmful__is_rolled_back_to_an_older_one_unless_pinned),
		cmocka_unit_test(latest__that_is_new_and_not_held__is_published),
		cmocka_unit_test(current__with_other_overrides_or_settings__is_composed_again),
		cmocka_unit_test(files__that_somebody_changed__are_restored_where_that_is_set),
		cmocka_unit_test(gate__says_verdict_before_pin_before_rollout),
		cmocka_unit_test(gate__opened_by_force__is_closed_by_a_pin_only),
		cmocka_unit_test(gate__of_a_host_without_a_version__does_not_wait_for_its_rollout),
		cmocka_unit_test(commit__asks_the_gate_of_its_origin_again),
		cmocka_unit_test(commit__that_is_allowed_but_not_the_first_choice__goes_on),
		cmocka_unit_test(outcome__of_what_a_decision_holds__is_no_failure),
		cmocka_unit_test(outcome__of_what_is_bad__is_a_failure_even_if_it_is_pinned),
		cmocka_unit_test(facts__are_read_and_set_by_their_names),
		cmocka_unit_test(names__of_rows_actions_and_origins__are_all_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
