#!/usr/bin/env python3
"""Seeded bugs: each is put into a copy of one file of the product, linked into a simulator of its own, and must be found.

Usage: tests/sim/bugs.py [--third N] [--seeds N] [WORD...]     all, or every third from the N-th on, or those with a word in their names

A bug that is not found within the seeds (1000) is a failure: of the simulator. So is one whose text is no longer in the file: the
product has changed, and the bug must be written again; all are looked for and compiled each time. Ends with "N passed, N failed".
"""
import argparse
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('PULLET_BUILD', 'build')
FOUND = re.compile(r'^seed (\d+): (.+)$', re.M)

# name, file, text, text with the bug; 'fleet': lives of a fleet of 60 hosts find it, within a 25th of the seeds
BUGS = [
    # ---- the disk
    ('files are not synced', 'agent/files/file.c', 'if (o->sync && sys->fsync(fd))', 'if (0)'),
    ('directories are not synced', 'agent/files/file.c', 'if (sync && sys->fsync(dir)) {\n\t\texplain_file_error(why,', 'if (0) {\n\t\texplain_file_error(why,'),
    ('a short write is a whole one', 'agent/files/file.c', '\t\tdata += n;\n\t\tlen -= (size_t)n;', '\t\tdata += n;\n\t\tlen = 0;'),
    ('the state is synced after the file', 'agent/publish/publish.c', 'bool sync = needs_sync(p, dir >= 0 && !file_in_memory(dir));', 'bool sync = p->config->strict;'),
    ('the file before the state', 'agent/publish/publish.c', 'save_version, prepare_image, publish_text, publish_set,', 'publish_text, publish_set, prepare_image, save_version,'),
    ('strict is normal', 'agent/publish/publish.c', 'return p->config->strict || target_on_disk ||', 'return target_on_disk ||'),
    ('the state is never synced', 'agent/config/syncing.c', '\tif (j->files & SYNCING_STATE)\n\t\tj->error = store_sync', '\tif (0)\n\t\tj->error = store_sync'),
    ('descriptors of read files stay open', 'agent/files/file.c', '\tsys->close(fd);\n\treturn r;\n}\n\nint file_read(', '\treturn r;\n}\n\nint file_read('),
    ('temporary files stay', 'agent/files/file.c', '\t\tif (sys->unlinkat(dir, e->d_name, 0) == 0)', '\t\tif (0 && sys->unlinkat(dir, e->d_name, 0) == 0)'),
    ('the set is not flipped at once', 'agent/publish/file_set.c', '\tif (f->sys->renameat(dir, temporary, dir, FILE_SET_LINK)) {', '\tf->sys->unlinkat(dir, FILE_SET_LINK, 0);\n\tif (f->sys->renameat(dir, temporary, dir, FILE_SET_LINK)) {'),
    ('a damaged state file ends the search', 'agent/version/store.c', '\t\tif (r == -EBADMSG) /* what', '\t\tif (r == -EBADMSG)\n\t\t\tbreak;\n\t\tif (r == -EBADMSG) /* what'),
    ('no memory is damage', 'agent/version/store.c', 'if (r == 0 || r == -EMSGSIZE || file_error_is_ours(-r) ||', 'if (r == 0 || r == -EMSGSIZE ||'),
    # ---- versions
    ('generations are used again', 'agent/version/store.c', 'return s->highest + 1;', 'return s->highest ? s->highest : 1;'),
    ('the generation is not raised', 'agent/publish/image.c', '\t\traise_pages(i, generation); /* first of all: somebody sleeps on it */\n', ''),
    ('a pin holds nothing', 'agent/config/decide.c', '\tif (s->pin == PIN_SET)\n\t\treturn GATE_PIN;\n', ''),
    ('a rollback does not reject what it replaces', 'agent/config/decisions.c', '\tif (c->step.decision.row != ROW_OPERATOR_ROLLS_BACK ||', '\tif (1 ||'),
    ('the check program is not asked', 'agent/config/step.c', '\tif (!programs_wanted(c->settings))\n\t\tcommit_step(c);', '\tif (1)\n\t\tcommit_step(c);'),
    ('the guard sleeps', 'agent/verify/verify.c', '\tif (c->forced)\n\t\treturn 0;\n\tif (root', '\tif (1)\n\t\treturn 0;\n\tif (root'),
    ('decisions are not saved', 'agent/config/decisions_file.c', '\tc->decisions.unsaved = r != 0;\n', '\tc->decisions.unsaved = false;\n\tdir = store_dir(c->current.store);\n\tif (dir >= 0) {\n\t\tc->env->sys->unlinkat(dir, "ledger.json", 0);\n\t\tc->env->sys->close(dir);\n\t}\n'),
    ('a pin is not kept over a restart', 'agent/version/ledger_form.c', '\tif (r == 0 && pin)\n\t\tr = parse_entry(pin', '\tif (0)\n\t\tr = parse_entry(pin'),
    ('overrides are not kept over a restart', 'agent/version/ledger_form.c', '"verdicts", "overrides"};', '"verdicts", "over"};'),
    # ---- pulls
    ('a pull holds the version for ever', 'agent/pull/pull.c', 'version_copy(held, pull->held)', '0 && (pull->held->generation = 0)'),
    ('success does not restore the interval', 'lib/supervisor.c', '\tif (outcome == SUPERVISOR_SUCCESS)\n\t\ts->delay_ms = s->interval_ms;\n\telse if', '\tif'),
    ('what others wrote is left', 'agent/config/decide.c', 's->place == PLACE_CHANGED && s->drift == DRIFT_HEAL', '0'),
    ('an old answer of a watch is taken', 'agent/pull/pull.c', ' && !answer.note[0];', ';'),
    ('a suspension ends no more', 'agent/config/schedule.c', '\twatches_start(c);\n\tschedule_set_due(c, splay_ms(c));', '\twatches_start(c);'),
    ('a hint during a run is lost', 'lib/trigger.c', '\t\tif (old & RESERVED)\n\t\t\tnew |= armed_at(now_ms, 0);\n\t\telse if', '\t\tif'),
    # ---- push
    ('messages wake nobody', 'agent/push/topics.c', '\t\thint_within(t, topic, m->spread_ms);\n\t}\n\treturn result;', '\t}\n\treturn result;'),
    ('a deaf socket stays', 'agent/push/session.c', '\trebuild_later(s, SESSION_LOST, now_ms);\n\treturn SESSION_NONE;', '\ts->deadline_ms = 0;\n\ts->phase = SESSION_LOST;\n\treturn SESSION_NONE;'),
    ('a refused connection is not tried again', 'agent/push/session.c', '\tnote_failure(s, event, now_ms);\n\trebuild_later(s, SESSION_CLOSED, now_ms);', '\tnote_failure(s, event, now_ms);\n\ts->phase = SESSION_CLOSED;'),
    # ---- what lives have found in the agent itself
    ('a product is saved once for each try', 'agent/verify/candidate.c', '\tc->body.len = 0; /* an attempt that failed has appended it, too */\n\tfor (size_t i = 0; i < c->version.part_count; i++)\n\t\tc->body.len += c->version.parts[i].len;\n', ''),
    ('a page that cannot be read is replaced', 'agent/publish/image.c', 'return file_error_is_ours(-r) || file_error_may_pass(-r) ? r : -ENOENT;', 'return -ENOENT;'),
    # ---- a fleet
    ('hosts that start together pull together', 'agent/config/schedule.c', 'return sys_random_upto(c->env->sys, bound < CONFIG_SPLAY_MS ? bound : CONFIG_SPLAY_MS);', 'return bound ? 0 : 1;', 'fleet'),
    ('a relay does not say what it may have missed', 'agent/relay/relay.c', '\tr->missed = true;\n', '\tr->missed = !where;\n', 'fleet'),
    ('a relay forgets the spread of a message', 'agent/relay/relay.c', 't->spread_ms = m->spread_ms > r->options.spread_ms ? m->spread_ms : r->options.spread_ms;', 't->spread_ms = r->options.spread_ms;', 'fleet'),
    ('another epoch is no news', 'agent/push/session.c', '\t\tif (!l->heard)\n\t\t\tnote_epoch(s, m);', '\t\tif (l->heard)\n\t\t\tnote_epoch(s, m);', 'fleet'),
    # ---- the process
    ('the held version of a pull leaks', 'agent/pull/pull.c', '\tif (pull->held)\n\t\tversion_fini(pull->held);\n', ''),
    ('a probe that fails changes nothing', 'agent/config/settle.c', 'return decisions_verdict(c, v->sha256) == VERDICT_PROBE ? CURRENT_HARMFUL : CURRENT_GOOD;', 'return CURRENT_GOOD;'),
    ('a reload keeps the trigger of what is gone', 'agent/agent.c', '\ttake_triggers(\n\t\ta); /*', '\t/*'),
]


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def plant(name, path, text, bug):
    """Writes the file with the bug; its directory, or None where the text is not there."""
    source = read(path)
    if source.count(text) != 1 or text == bug:
        return None
    place = os.path.join(BUILD, 'sim', 'bugs', re.sub(r'\W+', '_', name))
    os.makedirs(os.path.join(ROOT, place), exist_ok=True)
    target = os.path.join(ROOT, place, 'bug.c')
    source = source.replace(text, bug)
    if not os.path.exists(target) or open(target).read() != source:
        with open(target, 'w') as f:
            f.write(source)
    return place


def check(bugs):
    """All of them are in the code and compile, also those that are not searched for today; their directories."""
    places = {b[0]: plant(*b[:4]) for b in bugs}
    missing = [f'{b[0]}: its text is not, or not once, in {b[1]}' for b in bugs if not places[b[0]]]
    objects = [f'{place}/bug.o' for place in places.values() if place]
    compiled = subprocess.run(['make', '-s', '-k', '-j2', 'CFLAGS=-fsyntax-only', *objects], cwd=ROOT, capture_output=True, text=True)
    if missing or compiled.returncode:
        raise SystemExit('\n'.join(f'not ok - {m}' for m in missing) + '\n' + compiled.stderr)
    return places


def find(place, seeds, fleet):
    """Seed and sentence of the first life that shows it, or None."""
    subprocess.run(['make', '-s', f'{place}/sim'], cwd=ROOT, check=True)
    lives = ['--fleet', '--hosts', '60', '--seeds', str(seeds // 25)] if fleet else ['--seeds', str(seeds)]
    run = subprocess.run([f'{place}/sim', *lives, '--until-flaw'], cwd=ROOT, capture_output=True, text=True)
    found = FOUND.search(run.stdout)
    return (found.group(1), found.group(2)) if found else None


def try_bug(seeds, place, name, fleet=None):
    begin = time.monotonic()
    found = find(place, seeds, fleet)
    if not found:
        print(f'not ok - {name}: not found within {seeds} seeds')
        return False
    print(f'ok - {name}: seed {found[0]}, {time.monotonic() - begin:.1f} s: {found[1][:90]}')
    sys.stdout.flush()
    return True


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--third', type=int)
    options.add_argument('--seeds', type=int, default=1000)
    options.add_argument('words', nargs='*')
    o = options.parse_args()
    places = check(BUGS)
    bugs = BUGS if o.third is None else BUGS[o.third % 3::3]
    bugs = [b for b in bugs if not o.words or any(w in b[0] for w in o.words)]
    good = sum(try_bug(o.seeds, places[b[0]], b[0], *b[4:]) for b in bugs)
    print(f'{good} passed, {len(bugs) - good} failed')
    return good != len(bugs)


if __name__ == '__main__':
    sys.exit(main())
