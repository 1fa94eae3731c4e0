/* The status page: polls the agent's status and shows it. Every text is inserted as text, never as markup; the policy in page.h
 * enforces that. Rows are kept and changed in place, so that focus, selection and screen readers keep their place. */
'use strict';

const POLL_MS = 2000;
const TIMEOUT_MS = 10000; // of a request
const FEW = 25; // configs shown at first,
const MANY = 100; // or up to so many that need attention
const FEW_CHANGES = 5; // of a publication, shown at first

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
const remaining = (ms) => (ms < 500 ? 'a moment' : duration(ms));

/* ---- the document ---- */

function makeElement(tag, classes, text) {
  const e = document.createElement(tag);
  if (classes) e.className = classes;
  if (text !== undefined) e.textContent = text;
  return e;
}

/* Changes the text only where it differs. */
function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function changeAttribute(e, name, value) {
  if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

function setState(e, kind, word) {
  changeAttribute(e, 'data-state', kind);
  setText(e, word);
}

/* Makes the children of a parent match a list: kept by key, created when new, in the list's order. */
function syncChildren(parent, items, key, create, update) {
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

/* A row: state, name with details, numbers. */
function makeRow(labels, tag = 'span') {
  const tr = makeElement('tr');
  tr.state = makeElement('span', 'state');
  const cell = makeElement('td');
  cell.append(tr.state);
  tr.head = makeElement('th');
  tr.head.scope = 'row';
  tr.name = makeElement(tag, 'name');
  tr.chips = makeElement('span');
  tr.source = makeElement('span', 'source');
  tr.remarks = makeElement('span');
  tr.head.append(tr.name, tr.chips, tr.source, tr.remarks);
  tr.append(cell, tr.head);
  tr.numbers = labels.map((label) => {
    const td = makeElement('td', 'number');
    td.dataset.label = label;
    tr.append(td);
    return td;
  });
  return tr;
}

function fillRow(tr, kind, word, name, source, chips, remarks, numbers) {
  setState(tr.state, kind, word);
  setText(tr.name, name);
  setText(tr.source, source);
  syncChildren(tr.chips, chips, (c) => c, (c) => makeElement('span', 'chip', c), () => {});
  syncChildren(tr.remarks, remarks, (w) => w.what, () => makeElement('span', 'why'), (e, w) => {
    changeAttribute(e, 'class', `why ${w.tone}`);
    setText(e, w.text);
  });
  numbers.forEach((text, i) => setText(tr.numbers[i], text));
}

/* ---- configs ---- */

const CONFIG_KINDS = {stale: 'bad', failing: 'bad', waiting: 'warn', ok: 'ok'};
const RANK = {stale: 1, failing: 2, waiting: 3, attention: 4, ok: 5};
const shown = {state: null, text: '', all: false, sort: 'state', reversed: false};
let last = null; // the last answer
let lastChanges = null; // the same of the changes

/* By what the configs are sorted: numbers as numbers, and as people count. What has none comes last. */
const COLLATOR = new Intl.Collator('en', {numeric: true});
const SORTS = {
  state: {of: (c) => c.rating.rank},
  name: {},
  generation: {of: (c) => c.generation || null, down: true},
  published: {of: (c) => c.published_ms, down: true},
  confirmed: {of: (c) => c.age_ms, down: true},
  next: {of: (c) => (c.running ? 0 : c.backoff_ms || (c.deferred ? 0 : c.next_pull_in_ms))},
};

function compareConfigs(a, b) {
  const {of, down} = SORTS[shown.sort];
  const x = of ? of(a) : null, y = of ? of(b) : null;
  const turn = shown.reversed ? -1 : 1;
  if (x !== y && (x === null || y === null)) return x === null ? 1 : -1;
  if (x !== y) return (x < y ? -1 : 1) * (down ? -1 : 1) * turn;
  return COLLATOR.compare(a.name, b.name) * (of ? 1 : turn);
}

/* The same column again turns the order round. */
function sortBy(column) {
  shown.reversed = shown.sort === column && !shown.reversed;
  shown.sort = column;
  showConfigs();
}

function showSort() {
  for (const th of document.querySelectorAll('th[data-sort]')) {
    const down = Boolean(SORTS[th.dataset.sort].down) !== shown.reversed;
    changeAttribute(th, 'aria-sort', th.dataset.sort !== shown.sort ? 'none' : down ? 'descending' : 'ascending');
  }
  if (id('sort').value !== shown.sort) id('sort').value = shown.sort;
  setText(id('configs-caption'), shown.sort === 'state' && !shown.reversed ? 'Configs, those that need attention first' : 'Configs');
}

const DECISIONS = ['pin', 'rollout', 'operator']; // they keep the server's version back, which is no trouble
const FEW_OVERRIDES = 3; // listed one by one

const because = (d) => `by ${d.by}${d.reason ? `: ${d.reason}` : ''}`;

/* Adds the last error with its cause; a check's error only once, in the explanation. */
function addErrors(c, add) {
  const isLast = c.rejected && c.rejected.is_last_error;
  const when = c.last_error_ms ? ` (${ago(last.now_ms - c.last_error_ms)})` : '';
  const tone = c.state === 'ok' ? 'mild' : 'bad';
  const rejected = c.rejected && !DECISIONS.includes(c.rejected.by);
  if (c.last_error && !isLast) add('error', `${c.cause ? `${c.cause}: ` : ''}${c.last_error}${when}`, tone);
  c.explanation.forEach((text, i) => add(`explanation ${i}`, i === 0 && isLast ? text + when : text,
    i > 0 || !rejected ? 'note' : isLast ? tone : 'bad'));
}

/* Remarks about a config: bad, mild, or only a note. */
function findRemarks(c) {
  const found = [];
  const add = (what, text, tone = 'bad') => found.push({what, text, tone});
  addErrors(c, add);
  if (c.reload && c.reload.error) add('reload', `the reload failed: ${c.reload.error}`);
  if (c.probe && c.probe.error) add('probe', `the probe failed: ${c.probe.error}`);
  if (c.watch && c.watch.error) add('watch', `the watch failed: ${c.watch.error}`, 'mild');
  if (c.drifted) add('drift', 'published files were changed by others, and are not restored', 'mild');
  if (c.suspension) add('suspension', `suspended ${because(c.suspension)}`, 'note');
  if (c.pin) add('pin', `pinned ${because(c.pin)}`, 'note');
  for (const o of c.overrides.slice(0, FEW_OVERRIDES)) add(`override ${o.key}`, `${o.key} is overridden for ${duration(o.until_ms - last.now_ms)} ${because(o)}`, 'note');
  if (c.overrides.length > FEW_OVERRIDES) add('overrides', `and ${plural(c.overrides.length - FEW_OVERRIDES, 'other override')}`, 'note');
  return found;
}

function findChips(c) {
  const found = [];
  if (c.suspension) found.push(c.suspension.until_ms === null ? 'suspended' : `suspended for ${duration(c.suspension.until_ms - last.now_ms)}`);
  if (c.pin) found.push(c.pin.until_ms === null ? 'pinned' : `pinned for ${duration(c.pin.until_ms - last.now_ms)}`);
  if (c.overrides.length) found.push(plural(c.overrides.length, 'override'));
  if (c.watch && c.watch.state === 'watching') found.push('watched');
  if (c.probe && c.probe.state === 'running') found.push('probe running');
  return found;
}

/* Colour and rank. First is an application that waits for its first version while pulls fail. */
function rateConfig(c) {
  if (c.state === 'waiting' && c.last_error) return {kind: 'bad', rank: 0};
  if (c.state === 'ok' && c.remarks.some((w) => w.tone !== 'note')) return {kind: 'warn', rank: RANK.attention};
  return {kind: CONFIG_KINDS[c.state] || 'warn', rank: RANK[c.state] || 0};
}

function nextPull(c) {
  if (c.running) return 'now';
  if (c.backoff_ms) return `backoff ${remaining(c.backoff_ms)}`;
  if (c.deferred) return 'queued';
  return c.next_pull_in_ms === null ? '\u2013' : soon(c.next_pull_in_ms);
}

function fillConfig(tr, c) {
  fillRow(tr, c.rating.kind, c.state, c.name, c.url || '', findChips(c), c.remarks, [
    c.generation ? number(c.generation) : '\u2013',
    c.published_ms === null ? 'never' : ago(last.now_ms - c.published_ms),
    c.age_ms === null ? 'never' : ago(c.age_ms),
    nextPull(c),
  ]);
  changeAttribute(tr.name, 'href', `#config=${encodeURIComponent(c.name)}`);
  if (tr.generation !== undefined && tr.generation !== c.generation) flashRow(tr);
  tr.generation = c.generation;
}

function flashRow(e) {
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
  syncChildren(id('states'), [...counts], ([word]) => word, ([word]) => {
    const b = makeElement('button');
    b.type = 'button';
    b.addEventListener('click', () => {
      shown.state = word === 'all' ? null : word;
      showConfigs();
    });
    return b;
  }, (b, [word, n]) => {
    setText(b, `${word} ${number(n)}`);
    changeAttribute(b, 'aria-pressed', String((shown.state || 'all') === word));
  });
}

function showConfigs() {
  if (!last) return;
  const configs = last.status.configs;
  const fits = configs.filter((c) => (!shown.state || c.state === shown.state) &&
    (!shown.text || `${c.name} ${c.url || ''}`.toLowerCase().includes(shown.text)));
  fits.sort(compareConfigs);
  const byState = shown.sort === 'state' && !shown.reversed;
  const attention = byState ? fits.findIndex((c) => c.rating.rank === RANK.ok) : 0;
  const few = shown.all ? fits : fits.slice(0, Math.max(FEW, Math.min(MANY, attention < 0 ? fits.length : attention)));
  const labels = ['generation', 'published', 'confirmed', 'next pull'];
  fillStates(configs);
  showSort();
  syncChildren(id('config-rows'), few, (c) => c.name, () => makeRow(labels, 'a'), fillConfig);
  id('configs-empty').hidden = fits.length > 0;
  setText(id('configs-empty'), configs.length ? 'No config fits the filter.' : 'No config is configured.');
  id('configs-more').hidden = few.length === fits.length;
  setText(id('configs-more'), `Show all ${number(fits.length)}`);
}

/* ---- servers, push, receipts ---- */

function fillAddress(tr, {server, a, first}) {
  const inBackoff = a.backoff_ms > 0;
  const troubled = a.failures_in_a_row > 0;
  const notes = [];
  if (a.error) notes.push({what: 'error', text: a.error + (inBackoff ? ` (backoff ${remaining(a.backoff_ms)})` : ''), tone: inBackoff ? 'bad' : 'mild'});
  fillRow(tr, inBackoff ? 'bad' : troubled ? 'warn' : 'ok', inBackoff ? 'backoff' : troubled ? 'failing' : 'ok',
    server.name || a.url, server.name ? a.url : '', troubled ? [`${plural(a.failures_in_a_row, 'failure')} in a row`] : [], notes,
    first ? [number(server.in_flight), number(server.pending), number(server.dispatched)] : ['', '', '']);
}

function showServers(status) {
  const rows = status.servers.flatMap((server, i) => server.addresses.map((a, n) => ({server, a, first: n === 0, key: `${i} ${n} ${a.url}`})));
  syncChildren(id('server-rows'), rows, (r) => r.key, () => makeRow(['in flight', 'queued', 'pulls']), fillAddress);
}

const PUSH_KINDS = {connected: 'ok', connecting: 'warn', silent: 'bad', refused: 'bad'};

function showPush(status) {
  id('push').hidden = !status.push.length;
  syncChildren(id('push-rows'), status.push, (p) => p.endpoint, () => makeRow(['last message', 'messages', 'gaps']), (tr, p) =>
    fillRow(tr, PUSH_KINDS[p.state] || 'warn', p.state, p.endpoint, '', [], p.error ? [{what: 'error', text: p.error, tone: 'bad'}] : [],
      [p.last_message_ago_ms === null ? 'never' : ago(p.last_message_ago_ms), number(p.messages), number(p.gaps)]));
}

const REPORT_KINDS = {ok: 'ok', starting: 'warn', failing: 'bad', off: 'unknown'};

function showReport(status) {
  const rows = status.report ? [status.report] : [];
  id('report').hidden = !rows.length;
  syncChildren(id('report-rows'), rows, (r) => r.key, () => makeRow(['last written', 'written', 'failed']), (tr, r) =>
    fillRow(tr, REPORT_KINDS[r.state] || 'warn', r.state, r.key || 'the key is not known yet', `server ${r.server}`, [],
      r.error ? [{what: 'error', text: r.error, tone: r.state === 'failing' ? 'bad' : 'mild'}] : [],
      [r.sent_ms === null ? 'never' : ago(last.now_ms - r.sent_ms), number(r.sent), number(r.failed)]));
}

/* ---- changes ---- */

const MASK = '***';
const SIGNS = {added: ['+', 'added'], removed: ['\u2212', 'removed'], changed: ['~', 'changed']};

function changeLine(c) {
  const li = makeElement('li', c.op);
  const [sign, word] = SIGNS[c.op];
  const text = makeElement('span');
  const signMark = makeElement('span', 'sign', sign);
  signMark.setAttribute('aria-hidden', 'true');
  text.append(makeElement('span', 'unseen', `${word} `), makeElement('span', 'key', c.key));
  const value = (tag, name, v) => text.append(makeElement('span', 'unseen', `, ${name}:`), ' ', makeElement(tag, v === MASK ? 'value masked' : 'value', v));
  const masked = c.old === MASK && c.new === MASK; // once is enough
  if (c.old !== undefined && !masked) value('del', 'was', c.old);
  if (c.old !== undefined && c.new !== undefined && !masked) {
    const arrow = makeElement('span', 'arrow', ' \u2192');
    arrow.setAttribute('aria-hidden', 'true');
    text.append(arrow);
  }
  if (c.new !== undefined) value('ins', 'is', c.new);
  li.append(signMark, text);
  return li;
}

function changeList(changes) {
  const ul = makeElement('ul', 'diff');
  ul.append(...changes.map(changeLine));
  return ul;
}

/* Changes behind a summary that opens them. */
function foldChanges(summary, changes, more, config) {
  const details = makeElement('details');
  details.append(makeElement('summary', '', summary), changeList(changes));
  if (more) details.append(makeElement('p', 'origin', `and ${number(more)} more: pullet diff ${config}`));
  return details;
}

function makeChanges(p) {
  if (p.error) return [makeElement('p', 'origin', p.error)];
  if (!p.changes) return [makeElement('p', 'origin', p.generation === 1 ? 'the first' : p.from === null ?
    'changes unknown: the version before is no longer stored' : 'changed as a whole: it has no keys')];
  const count = p.changes.length + p.more;
  if (!count) return [makeElement('p', 'origin', 'the same values as before')];
  if (p.from === null) return [foldChanges(`the first, with ${plural(count, 'key')}`, p.changes, p.more, p.config)];
  const rest = count - FEW_CHANGES;
  const first = changeList(p.changes.slice(0, FEW_CHANGES));
  return rest > 0 ? [first, foldChanges(`${number(rest)} more`, p.changes.slice(FEW_CHANGES), p.more, p.config)] : [first];
}

function makePublication(p) {
  const li = makeElement('li');
  const body = makeElement('div');
  const line = makeElement('p');
  li.at_ms = p.at_ms;
  li.time = makeElement('time');
  li.time.dateTime = new Date(p.at_ms).toISOString();
  li.time.title = new Date(p.at_ms).toLocaleString();
  line.append(makeElement('span', 'name', p.config), makeElement('span', 'chip', p.from === null ? `generation ${number(p.generation)}` :
    `generation ${number(p.from)} \u2192 ${number(p.generation)}`));
  body.append(line);
  if (p.origin && p.origin !== 'pull') body.append(makeElement('p', 'origin', p.origin));
  body.append(...makeChanges(p));
  li.append(li.time, body);
  return li;
}

function showChanges(answer) {
  const had = id('changes').childElementCount > 0;
  const publications = answer.publications;
  lastChanges = answer;
  id('changes-empty').hidden = publications.length > 0;
  id('masked').hidden = answer.values || !publications.some((p) => p.changes && p.changes.some((c) => c.old || c.new));
  setText(id('tunnel'), `ssh -L 8377:${last.status.runtime_dir}/control.sock ${last.status.host}`);
  syncChildren(id('changes'), publications, (p) => `${p.config}/${p.generation}/${p.at_ms}/${p.changes ? p.changes.length : -1}`, (p) => {
    const li = makePublication(p);
    if (had) li.classList.add('new');
    return li;
  }, () => {});
  showTimes();
}

function showTimes() {
  for (const li of id('changes').children) setText(li.time, ago(last.now_ms - li.at_ms));
}

/* ---- the whole page ---- */

function rateAgent(status) {
  const count = (word) => status.configs.filter((c) => c.state === word).length;
  const [stale, failing, waiting] = ['stale', 'failing', 'waiting'].map(count);
  const parts = [[stale, 'stale'], [failing, 'failing'], [waiting, 'waiting']].filter(([n]) => n).map(([n, word]) => `${number(n)} ${word}`);
  if (!status.configs.length) return ['unknown', 'nothing is configured'];
  const troubled = status.configs.filter((c) => c.remarks.some((w) => w.tone === 'bad')).length;
  if (!parts.length && troubled) return ['warn', `all ${number(status.configs.length)} ok, ${number(troubled)} with trouble`];
  if (!parts.length) return ['ok', `all ${number(status.configs.length)} ok`];
  return [status.configs.some((c) => c.rating.kind === 'bad') ? 'bad' : 'warn', `${parts.join(', ')} of ${number(status.configs.length)}`];
}

/* Announces changes since the last answer to screen readers. */
function announceChanges(before, status) {
  const error = (s) => (s.configuration && s.configuration.error) || '';
  if (error(status) && error(status) !== error(before)) setText(id('announce'), 'the configuration was rejected');
  const was = new Map(before.configs.map((c) => [c.name, c.state]));
  const moved = status.configs.filter((c) => was.has(c.name) && was.get(c.name) !== c.state);
  if (!moved.length) return;
  const names = moved.slice(0, 3).map((c) => `${c.name} is ${c.state}`).join('; ');
  setText(id('announce'), moved.length > 3 ? `${names}; and ${plural(moved.length - 3, 'other')}` : names);
}

function showStatusTitle(status) {
  const [kind, word] = rateAgent(status);
  document.title = `${kind === 'ok' ? '' : `${word} \u00b7 `}${status.host} \u00b7 pullet`;
}

function showStatus(status) {
  const before = last && last.status;
  const facts = [`pullet ${status.version}`, `up ${duration(status.uptime_ms)}`, ...Object.entries(status.labels).map(([k, v]) => `${k}=${v}`)];
  last = {status, now_ms: status.started_ms + status.uptime_ms};
  for (const c of status.configs) {
    c.remarks = findRemarks(c);
    c.rating = rateConfig(c);
  }
  if (before) announceChanges(before, status);
  const [kind, word] = rateAgent(status);
  setState(id('overall'), kind, word);
  setText(id('host'), status.host);
  setText(id('facts'), facts.join(' \u00b7 '));
  if (!detail) showStatusTitle(status);
  const rejected = status.configuration && status.configuration.error;
  id('reload').hidden = !rejected;
  setText(id('reload-error'), rejected ? rejected + (status.configuration.errors > 1 ?
    ` (and ${plural(status.configuration.errors - 1, 'other error')})` : '') : '');
  showConfigs();
  showServers(status);
  showPush(status);
  showReport(status);
  showTimes();
}

/* ---- polling ---- */

let heardAt = null, lostAt = null, timer = null, known = null, polling = false, again = false, failures = 0;

async function getJson(path) {
  const answer = await fetch(path, {cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS)});
  if (!answer.ok) {
    const {error} = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(error || `the agent answered ${answer.status}`), {refused: Boolean(error)});
  }
  return answer.json();
}

/* The current generations: changes are asked for only when these differ. */
const generations = (status) => `${status.started_ms} ${status.configs.map((c) => `${c.name} ${c.generation}`).sort().join(' ')}`;

function showHeard() {
  const lost = lostAt !== null;
  id('lost').hidden = !lost;
  if (lost) {
    setState(id('overall'), 'unknown', 'connection lost');
    setText(id('lost'), heardAt === null ? 'The agent does not answer; retrying.' :
      'The agent does not answer: below is its last known status. Retrying.');
    document.body.dataset.lost = '';
  } else {
    delete document.body.dataset.lost;
  }
  setText(id('heard'), heardAt === null ? '' : lost ? `last answer ${ago(performance.now() - heardAt)}` : 'live');
}

async function poll() {
  if (polling) {
    again = true; // what was asked for meanwhile
    return;
  }
  polling = true;
  clearTimeout(timer);
  const begin = performance.now();
  try {
    const status = await getJson('v1/status');
    heardAt = performance.now();
    if (lostAt !== null) setText(id('announce'), 'the agent answers again');
    lostAt = null;
    failures = 0;
    showStatus(status);
    const now = generations(status);
    if (now !== known) {
      const changes = await getJson('v1/changes');
      showChanges(changes);
      known = changes.complete ? now : null;
    }
    if (detail) await pollDetail(now);
  } catch (error) {
    if (lostAt === null) lostAt = performance.now();
    failures++;
  }
  showHeard();
  polling = false;
  if (again) {
    again = false;
    poll();
    return;
  }
  const took = performance.now() - begin;
  if (!document.hidden) timer = setTimeout(poll, Math.max(POLL_MS * Math.min(failures || 1, 5), 10 * (failures ? 0 : took)));
}

id('filter').addEventListener('input', (event) => {
  shown.text = event.target.value.trim().toLowerCase();
  showConfigs();
});
for (const th of document.querySelectorAll('th[data-sort]')) th.firstElementChild.addEventListener('click', () => sortBy(th.dataset.sort));
id('sort').addEventListener('change', (event) => {
  shown.reversed = false;
  shown.sort = event.target.value;
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
addEventListener('DOMContentLoaded', () => poll()); // detail.js is loaded by then
