/* The status page: asks the agent how it is, and shows it. Every text goes in as text, never as markup; the policy in page.h
 * would not let it be otherwise. Rows are kept and changed in place, so that what is focused, selected or being read aloud stays. */
'use strict';

const EVERY_MS = 2000; // between two questions
const GIVE_UP_MS = 10000; // on an answer
const FEW = 25; // configs that are shown unless more are asked for; of those that need attention
const MANY = 100; // so many
const FEW_CHANGES = 5; // of a publication, likewise

const id = (name) => document.getElementById(name);

/* ---- words ---- */

const NUMBER = new Intl.NumberFormat('en');
const number = (n) => NUMBER.format(n);
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;

function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 && days < 10 ? `${days} d ${hours % 24} h` : `${days} d`;
}

const ago = (ms) => (ms < 1000 ? 'just now' : `${duration(ms)} ago`);
const soon = (ms) => (ms < 500 ? 'now' : `in ${duration(ms)}`);
const held = (ms) => (ms < 500 ? 'a moment' : duration(ms));

/* ---- the document ---- */

function make(tag, classes, text) {
  const e = document.createElement(tag);
  if (classes) e.className = classes;
  if (text !== undefined) e.textContent = text;
  return e;
}

/* Only what is different is touched. */
function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function mark(e, name, value) {
  if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

function state(e, kind, word) {
  mark(e, 'data-state', kind);
  say(e, word);
}

/* Brings the children of a parent in line with a list: kept by key, made when they are new, in that order. */
function list(parent, items, key, create, update) {
  const old = new Map();
  for (const child of parent.children) old.set(child.key, child);
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let child = old.get(k);
    old.delete(k);
    if (!child) {
      child = create(item);
      child.key = k;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
  for (const child of old.values()) child.remove();
}

/* A row: its state, what it is about, numbers. */
function row(labels) {
  const tr = make('tr');
  tr.state = make('span', 'state');
  const cell = make('td');
  cell.append(tr.state);
  tr.head = make('th');
  tr.head.scope = 'row';
  tr.name = make('span', 'name');
  tr.chips = make('span');
  tr.source = make('span', 'source');
  tr.whys = make('span');
  tr.head.append(tr.name, tr.chips, tr.source, tr.whys);
  tr.append(cell, tr.head);
  tr.numbers = labels.map((label) => {
    const td = make('td', 'number');
    td.dataset.label = label;
    tr.append(td);
    return td;
  });
  return tr;
}

function fill(tr, kind, word, name, source, chips, whys, numbers) {
  state(tr.state, kind, word);
  say(tr.name, name);
  say(tr.source, source);
  list(tr.chips, chips, (c) => c, (c) => make('span', 'chip', c), () => {});
  list(tr.whys, whys, (w) => w.what, () => make('span', 'why'), (e, w) => {
    mark(e, 'class', `why ${w.tone}`);
    say(e, w.text);
  });
  numbers.forEach((text, i) => say(tr.numbers[i], text));
}

/* ---- configs ---- */

const KINDS = {stale: 'bad', failing: 'bad', waiting: 'warn', ok: 'ok'};
const RANK = {stale: 1, failing: 2, waiting: 3, attention: 4, ok: 5};
const shown = {state: null, text: '', all: false};
let last = null; // the last answer

// of the server's version, by whom; what was decided is no trouble
const AWAY = {
  pin: {how: 'held back by the pin', decided: true},
  rollout: {how: 'not rolled out to this host yet', decided: true},
  operator: {how: 'rolled back by an operator', decided: true},
  probe: {how: 'rolled back by the probe'},
};
const SOME = 3; // overrides that are told one by one

const because = (d) => `by ${d.by}${d.reason ? `: ${d.reason}` : ''}`;

/* An error that a check gave is told once, with the version that it is about; any other with its cause. */
function whyNot(c, add) {
  const away = c.rejected;
  const {how, decided} = away ? AWAY[away.by] || {how: `rejected by the ${away.by}`} : {};
  const told = away && away.is_last_error;
  const when = c.last_error_ms ? ` (${ago(last.now_ms - c.last_error_ms)})` : '';
  const tone = c.state === 'ok' ? 'mild' : 'bad';
  if (c.last_error && !told) add('error', `${c.cause ? `${c.cause}: ` : ''}${c.last_error}${when}`, tone);
  if (!away) return;
  add('away', `the server has ${away.version ? `version ${away.version}` : 'another version'}, ${how}` +
    `${away.by === 'pin' || !away.why ? '' : `: ${away.why}`}${told ? when : ''}`, decided ? 'note' : told ? tone : 'bad');
}

/* What is to be said of a config: bad, mild, or only noted. */
function whys(c) {
  const found = [];
  const add = (what, text, tone = 'bad') => found.push({what, text, tone});
  whyNot(c, add);
  if (c.reload && c.reload.error) add('reload', `the application could not be told: ${c.reload.error}`);
  if (c.probe && c.probe.error) add('probe', `the probe failed: ${c.probe.error}`);
  if (c.watch && c.watch.error) add('watch', `the watch: ${c.watch.error}`, 'mild');
  if (c.drifted) add('drift', 'somebody changed what was published, and it is left so', 'mild');
  if (c.suspension) add('suspension', `suspended ${because(c.suspension)}`, 'note');
  if (c.pin) add('pin', `pinned ${because(c.pin)}`, 'note');
  for (const o of c.overrides.slice(0, SOME)) add(`override ${o.key}`, `${o.key} is overridden for ${duration(o.until_ms - last.now_ms)} ${because(o)}`, 'note');
  if (c.overrides.length > SOME) add('overrides', `and ${plural(c.overrides.length - SOME, 'other override')}`, 'note');
  return found;
}

function chips(c) {
  const found = [];
  if (c.suspension) found.push(c.suspension.until_ms === null ? 'suspended' : `suspended for ${duration(c.suspension.until_ms - last.now_ms)}`);
  if (c.pin) found.push(c.pin.until_ms === null ? 'pinned' : `pinned for ${duration(c.pin.until_ms - last.now_ms)}`);
  if (c.overrides.length) found.push(plural(c.overrides.length, 'override'));
  if (c.watch && c.watch.state === 'watching') found.push('watched');
  if (c.probe && c.probe.state === 'watching') found.push('on probation');
  return found;
}

/* What it looks like, and where it stands: an application that waits for its first version, and gets none, is worst off. */
function check(c) {
  if (c.state === 'waiting' && c.last_error) return {kind: 'bad', rank: 0};
  if (c.state === 'ok' && c.whys.some((w) => w.tone !== 'note')) return {kind: 'warn', rank: RANK.attention};
  return {kind: KINDS[c.state] || 'warn', rank: RANK[c.state] || 0};
}

function next(c) {
  if (c.running) return 'now';
  if (c.backoff_ms) return `held for ${held(c.backoff_ms)}`;
  if (c.waiting) return 'in line';
  return c.next_pull_in_ms === null ? '\u2013' : soon(c.next_pull_in_ms);
}

function fillConfig(tr, c) {
  fill(tr, c.validated.kind, c.state, c.name, c.url || '', chips(c), c.whys, [
    c.generation ? number(c.generation) : '\u2013',
    c.published_ms === null ? 'never' : ago(last.now_ms - c.published_ms),
    c.age_ms === null ? 'never' : ago(c.age_ms),
    next(c),
  ]);
  if (tr.generation !== undefined && tr.generation !== c.generation) flash(tr);
  tr.generation = c.generation;
}

function flash(e) {
  e.classList.remove('new');
  void e.offsetWidth; // so that the animation begins again
  e.classList.add('new');
}

function fillStates(configs) {
  const counts = new Map([['all', configs.length]]);
  for (const word of ['stale', 'failing', 'waiting', 'ok']) {
    const n = configs.filter((c) => c.state === word).length;
    if (n) counts.set(word, n);
  }
  if (shown.state && !counts.has(shown.state)) counts.set(shown.state, 0);
  list(id('states'), [...counts], ([word]) => word, ([word]) => {
    const b = make('button');
    b.type = 'button';
    b.addEventListener('click', () => {
      shown.state = word === 'all' ? null : word;
      showConfigs();
    });
    return b;
  }, (b, [word, n]) => {
    say(b, `${word} ${number(n)}`);
    mark(b, 'aria-pressed', String((shown.state || 'all') === word));
  });
}

function showConfigs() {
  if (!last) return;
  const configs = last.status.configs;
  const fits = configs.filter((c) => (!shown.state || c.state === shown.state) &&
    (!shown.text || `${c.name} ${c.url || ''}`.toLowerCase().includes(shown.text)));
  const attention = fits.findIndex((c) => c.validated.rank === RANK.ok);
  const few = shown.all ? fits : fits.slice(0, Math.max(FEW, Math.min(MANY, attention < 0 ? fits.length : attention)));
  const labels = ['generation', 'published', 'confirmed', 'next pull'];
  fillStates(configs);
  list(id('config-rows'), few, (c) => c.name, () => row(labels), fillConfig);
  id('configs-empty').hidden = fits.length > 0;
  say(id('configs-empty'), configs.length ? 'No config fits the filter.' : 'No config is configured.');
  id('configs-more').hidden = few.length === fits.length;
  say(id('configs-more'), `Show all ${number(fits.length)}`);
}

/* ---- what else there is ---- */

function address(tr, {server, a, first}) {
  const rests = a.backoff_ms > 0;
  const troubled = a.failures_in_a_row > 0;
  const notes = [];
  if (a.error) notes.push({what: 'error', text: a.error + (rests ? ` (left alone for ${held(a.backoff_ms)})` : ''), tone: rests ? 'bad' : 'mild'});
  fill(tr, rests ? 'bad' : troubled ? 'warn' : 'ok', rests ? 'resting' : troubled ? 'failing' : 'ok',
    server.name || a.url, server.name ? a.url : '', troubled ? [`${plural(a.failures_in_a_row, 'failure')} in a row`] : [], notes,
    first ? [number(server.in_flight), number(server.pending), number(server.dispatched)] : ['', '', '']);
}

function showServers(status) {
  const rows = status.servers.flatMap((server, i) => server.addresses.map((a, n) => ({server, a, first: n === 0, key: `${i} ${n} ${a.url}`})));
  list(id('server-rows'), rows, (r) => r.key, () => row(['in flight', 'in line', 'pulls']), address);
}

const PUSH = {connected: 'ok', connecting: 'warn', silent: 'bad', refused: 'bad'};

function showPush(status) {
  id('push').hidden = !status.push.length;
  list(id('push-rows'), status.push, (p) => p.endpoint, () => row(['last message', 'messages', 'gaps']), (tr, p) =>
    fill(tr, PUSH[p.state] || 'warn', p.state, p.endpoint, '', [], p.error ? [{what: 'error', text: p.error, tone: 'bad'}] : [],
      [p.last_message_ago_ms === null ? 'never' : ago(p.last_message_ago_ms), number(p.messages), number(p.gaps)]));
}

const REPORT = {ok: 'ok', starting: 'warn', failing: 'bad', off: 'unknown'};

function showReport(status) {
  const rows = status.report ? [status.report] : [];
  id('report').hidden = !rows.length;
  list(id('report-rows'), rows, (r) => r.key, () => row(['last written', 'written', 'failed']), (tr, r) =>
    fill(tr, REPORT[r.state] || 'warn', r.state, r.key || 'the key is not known yet', `server ${r.server}`, [],
      r.error ? [{what: 'error', text: r.error, tone: r.state === 'failing' ? 'bad' : 'mild'}] : [],
      [r.sent_ms === null ? 'never' : ago(last.now_ms - r.sent_ms), number(r.sent), number(r.failed)]));
}

/* ---- changes ---- */

const MASK = '***';
const SIGNS = {added: ['+', 'added'], removed: ['\u2212', 'removed'], changed: ['~', 'changed']};

function changeLine(c) {
  const li = make('li', c.op);
  const [sign, word] = SIGNS[c.op];
  const text = make('span');
  const mark_ = make('span', 'sign', sign);
  mark_.setAttribute('aria-hidden', 'true');
  text.append(make('span', 'unseen', `${word} `), make('span', 'key', c.key));
  const value = (tag, name, v) => text.append(make('span', 'unseen', `, ${name}:`), ' ', make(tag, v === MASK ? 'value masked' : 'value', v));
  const masked = c.old === MASK && c.new === MASK; // once is enough
  if (c.old !== undefined && !masked) value('del', 'was', c.old);
  if (c.old !== undefined && c.new !== undefined && !masked) {
    const arrow = make('span', 'arrow', ' \u2192');
    arrow.setAttribute('aria-hidden', 'true');
    text.append(arrow);
  }
  if (c.new !== undefined) value('ins', 'is', c.new);
  li.append(mark_, text);
  return li;
}

function changeList(changes) {
  const ul = make('ul', 'diff');
  ul.append(...changes.map(changeLine));
  return ul;
}

/* What is folded in is there for whoever asks. */
function folded(summary, changes, more, config) {
  const details = make('details');
  details.append(make('summary', '', summary), changeList(changes));
  if (more) details.append(make('p', 'origin', `and ${number(more)} more: pullet diff ${config}`));
  return details;
}

function changesOf(p) {
  if (p.error) return [make('p', 'origin', p.error)];
  if (!p.changes) return [make('p', 'origin', p.generation === 1 ? 'the first' : p.from === null ?
    'what changed is not known: the version before is not kept here any more' : 'changed as a whole: it has no keys')];
  const count = p.changes.length + p.more;
  if (!count) return [make('p', 'origin', 'the documents of the server say the same')];
  if (p.from === null) return [folded(`the first, with ${plural(count, 'key')}`, p.changes, p.more, p.config)];
  const rest = count - FEW_CHANGES;
  const first = changeList(p.changes.slice(0, FEW_CHANGES));
  return rest > 0 ? [first, folded(`${number(rest)} more`, p.changes.slice(FEW_CHANGES), p.more, p.config)] : [first];
}

function publication(p) {
  const li = make('li');
  const body = make('div');
  const line = make('p');
  li.at_ms = p.at_ms;
  li.time = make('time');
  li.time.dateTime = new Date(p.at_ms).toISOString();
  li.time.title = new Date(p.at_ms).toLocaleString();
  line.append(make('span', 'name', p.config), make('span', 'chip', p.from === null ? `generation ${number(p.generation)}` :
    `generation ${number(p.from)} \u2192 ${number(p.generation)}`));
  body.append(line);
  if (p.origin && p.origin !== 'pull') body.append(make('p', 'origin', p.origin));
  body.append(...changesOf(p));
  li.append(li.time, body);
  return li;
}

function showChanges(answer) {
  const had = id('changes').childElementCount > 0;
  const publications = answer.publications;
  id('changes-empty').hidden = publications.length > 0;
  id('masked').hidden = answer.values || !publications.some((p) => p.changes && p.changes.some((c) => c.old || c.new));
  say(id('tunnel'), `ssh -L 8377:${last.status.runtime_dir}/control.sock ${last.status.host}`);
  list(id('changes'), publications, (p) => `${p.config}/${p.generation}/${p.at_ms}/${p.changes ? p.changes.length : -1}`, (p) => {
    const li = publication(p);
    if (had) li.classList.add('new');
    return li;
  }, () => {});
  showTimes();
}

function showTimes() {
  for (const li of id('changes').children) say(li.time, ago(last.now_ms - li.at_ms));
}

/* ---- all of it ---- */

function overall(status) {
  const count = (word) => status.configs.filter((c) => c.state === word).length;
  const [stale, failing, waiting] = ['stale', 'failing', 'waiting'].map(count);
  const parts = [[stale, 'stale'], [failing, 'failing'], [waiting, 'waiting']].filter(([n]) => n).map(([n, word]) => `${number(n)} ${word}`);
  if (!status.configs.length) return ['unknown', 'nothing is configured'];
  const troubled = status.configs.filter((c) => c.whys.some((w) => w.tone === 'bad')).length;
  if (!parts.length && troubled) return ['warn', `all ${number(status.configs.length)} ok, ${number(troubled)} with trouble`];
  if (!parts.length) return ['ok', `all ${number(status.configs.length)} ok`];
  return [status.configs.some((c) => c.validated.kind === 'bad') ? 'bad' : 'warn', `${parts.join(', ')} of ${number(status.configs.length)}`];
}

/* What has become other since the last answer, in a sentence for those who do not see it. */
function announce(before, status) {
  const error = (s) => (s.configuration && s.configuration.error) || '';
  if (error(status) && error(status) !== error(before)) say(id('announce'), 'the configuration was not taken');
  const was = new Map(before.configs.map((c) => [c.name, c.state]));
  const moved = status.configs.filter((c) => was.has(c.name) && was.get(c.name) !== c.state);
  if (!moved.length) return;
  const names = moved.slice(0, 3).map((c) => `${c.name} is ${c.state}`).join('; ');
  say(id('announce'), moved.length > 3 ? `${names}; and ${plural(moved.length - 3, 'other')}` : names);
}

function show(status) {
  const before = last && last.status;
  const facts = [`pullet ${status.version}`, `up ${duration(status.uptime_ms)}`, ...Object.entries(status.labels).map(([k, v]) => `${k}=${v}`)];
  last = {status, now_ms: status.started_ms + status.uptime_ms};
  for (const c of status.configs) {
    c.whys = whys(c);
    c.validated = check(c);
  }
  status.configs.sort((a, b) => a.validated.rank - b.validated.rank || (a.name < b.name ? -1 : 1));
  if (before) announce(before, status);
  const [kind, word] = overall(status);
  state(id('overall'), kind, word);
  say(id('host'), status.host);
  say(id('facts'), facts.join(' \u00b7 '));
  document.title = `${kind === 'ok' ? '' : `${word} \u00b7 `}${status.host} \u00b7 pullet`;
  const refused = status.configuration && status.configuration.error;
  id('reload').hidden = !refused;
  say(id('reload-error'), refused ? refused + (status.configuration.errors > 1 ?
    ` (and ${plural(status.configuration.errors - 1, 'other error')})` : '') : '');
  showConfigs();
  showServers(status);
  showPush(status);
  showReport(status);
  showTimes();
}

/* ---- asking ---- */

let heardAt = null, lostAt = null, timer = null, known = null, asking = false, failures = 0;

async function ask(path) {
  const answer = await fetch(path, {cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(GIVE_UP_MS)});
  if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
  return answer.json();
}

/* The generations that stand: as long as they are the same, so are the changes. */
const generations = (status) => `${status.started_ms} ${status.configs.map((c) => `${c.name} ${c.generation}`).sort().join(' ')}`;

function showHeard() {
  const lost = lostAt !== null;
  id('lost').hidden = !lost;
  if (lost) {
    state(id('overall'), 'unknown', 'connection lost');
    say(id('lost'), heardAt === null ? 'The agent does not answer; trying again.' :
      'The agent does not answer: what is below was so when it was last heard of. Trying again.');
    document.body.dataset.lost = '';
  } else {
    delete document.body.dataset.lost;
  }
  say(id('heard'), heardAt === null ? '' : lost ? `last heard of ${ago(performance.now() - heardAt)}` : 'live');
}

async function poll() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  const begin = performance.now();
  try {
    const status = await ask('v1/status');
    heardAt = performance.now();
    if (lostAt !== null) say(id('announce'), 'the agent answers again');
    lostAt = null;
    failures = 0;
    show(status);
    const now = generations(status);
    if (now !== known) {
      const changes = await ask('v1/changes');
      showChanges(changes);
      known = changes.complete ? now : null;
    }
  } catch (error) {
    if (lostAt === null) lostAt = performance.now();
    failures++;
  }
  showHeard();
  asking = false;
  const took = performance.now() - begin;
  if (!document.hidden) timer = setTimeout(poll, Math.max(EVERY_MS * Math.min(failures || 1, 5), 10 * (failures ? 0 : took)));
}

id('filter').addEventListener('input', (event) => {
  shown.text = event.target.value.trim().toLowerCase();
  showConfigs();
});
id('configs-more').addEventListener('click', () => {
  shown.all = true;
  showConfigs();
});
document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(timer);
  else poll();
});
setInterval(() => {
  if (lostAt !== null && !document.hidden) showHeard();
}, 1000);
poll();
