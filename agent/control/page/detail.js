/* One config on the status page: its layers, versions, differences, checks, and what happened to it. Its name is behind the # of the
 * address, so that the view has a link and the browser's way back. Like page.js, which is loaded before, it inserts text as text. */
'use strict';

const MOST_EVENTS = 50; // on the time line
const MOST_LINES = 500; // of a difference
const LONG_VALUE = 200; // characters of a value that are shown

let detail = null; // the config that is shown: {name, config, history, events, diff, pick}
let leaving = null; // the config whose row gets the focus back

const placeOf = (name) => `#config=${encodeURIComponent(name)}`;

/* The name behind the #, or null. */
function readPlace() {
  const hash = new URL(document.URL).hash;
  if (!hash.startsWith('#config=')) return null;
  try {
    return decodeURIComponent(hash.slice('#config='.length));
  } catch (error) {
    return hash; // no config is called so
  }
}

/* ---- words ---- */

/* Why a version was published: its origin, or what began the pull that brought it. */
function whyText(v) {
  if (v.origin && v.origin !== 'pull') return v.origin;
  switch (v.cause) {
    case 'push': return 'push';
    case 'watch': return 'watch';
    case 'start': return 'pull at the start';
    case 'operator': return v.by ? `pull asked for by ${v.by}` : 'pull';
    case 'pin': return v.by ? `unpinned by ${v.by}` : 'the pin has expired';
    default: return 'pull';
  }
}

const MOMENT = new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'medium'});

function makeTime(ms, text) {
  const time = makeElement('time', '', text === undefined ? MOMENT.format(ms) : text);
  time.dateTime = new Date(ms).toISOString();
  time.title = MOMENT.format(ms);
  return time;
}

const etag = (version) => (version ? version.replace(/^"(.*)"$/, '$1') : '\u2013');
const short = (text) => (text.length > LONG_VALUE ? `${text.slice(0, LONG_VALUE)}\u2026` : text);
const until = (d) => (d.until_ms === null ? '' : `, for ${duration(d.until_ms - last.now_ms)}`);

/* ---- facts ---- */

function nextText(c) {
  const due = nextPull(c);
  return c.suspension ? 'none while it is suspended' : c.delay_ms > c.interval_ms ? `${due} (slowed down: every ${duration(c.delay_ms)})` :
    `${due} (every ${duration(c.interval_ms)})`;
}

function reloadText(r) {
  const words = {idle: `generation ${number(r.notified)} is in use`, waiting: `generation ${number(r.pending)} waits, ${soon(r.next_ms)}`,
    running: `generation ${number(r.pending)} is being reloaded`, failed: `failed, again ${soon(r.next_ms)}: ${r.error}`};
  return `${words[r.state]} \u00b7 ${plural(r.runs, 'run')}, ${number(r.failed)} failed`;
}

function probeText(p) {
  const words = {none: 'not begun', waiting: 'waits for the reload', running: `generation ${number(p.generation)} is watched`,
    passed: `generation ${number(p.generation)} passed`, failed: `generation ${number(p.generation)} failed: ${p.error}`};
  return words[p.state];
}

function findFacts(c) {
  const facts = [
    ['Generation', c.generation ? number(c.generation) : 'nothing is published'],
    ['Version', etag(c.version)],
    ['Published', c.published_ms === null ? 'never' : `${ago(last.now_ms - c.published_ms)}`],
    ['Confirmed', c.age_ms === null ? 'never' : ago(c.age_ms)],
    ['Next pull', nextText(c)],
    ['Pulls', `${number(c.runs.success)} good, ${number(c.runs.failed + c.runs.not_started)} failed, ${number(c.runs.timeouts)} timed out`],
    ['Pushes', `${number(c.pushes)} (topic ${c.topic})`],
  ];
  if (c.watch) facts.push(['Watch', `${c.watch.state}, ${plural(c.watch.changes, 'change')}`]);
  facts.push(['Reload', c.reload ? reloadText(c.reload) : 'not configured'], ['Probe', c.probe ? probeText(c.probe) : 'not configured']);
  if (c.file) facts.push(['File', c.file]);
  if (c.snapshot) facts.push(['Snapshot', c.snapshot]);
  if (c.pin) facts.push(['Pin', `${because(c.pin)}${until(c.pin)}`]);
  if (c.suspension) facts.push(['Suspension', `${because(c.suspension)}${until(c.suspension)}`]);
  for (const o of c.overrides) facts.push([`Override of ${o.key}`, `${because(o)}${until(o)}`]);
  return facts;
}

function showFacts(c) {
  syncChildren(id('detail-facts'), findFacts(c), ([term]) => term, ([term]) => {
    const div = makeElement('div');
    div.value = makeElement('dd');
    div.append(makeElement('dt', '', term), div.value);
    return div;
  }, (div, [, text]) => setText(div.value, text));
}

/* ---- tables ---- */

/* A row of cells: each a text, or an element; the first is the head. */
function fillCells(tr, cells, labels) {
  while (tr.children.length < cells.length) {
    const first = !tr.children.length;
    const cell = makeElement(first ? 'th' : 'td', NUMBERS.has(labels[tr.children.length]) ? 'number' : '');
    if (first) cell.scope = 'row';
    cell.dataset.label = labels[tr.children.length];
    tr.append(cell);
  }
  cells.forEach((cell, i) => {
    if (typeof cell === 'string') setText(tr.children[i], cell);
    else if (tr.children[i].firstChild !== cell) tr.children[i].replaceChildren(cell);
  });
}

const NUMBERS = new Set(['generation', 'bytes', 'rejections', 'layer']);

function showLayers(c) {
  const several = c.layers.length > 1;
  setText(id('detail-layers-hint'), several ? 'Later layers win.' : '');
  syncChildren(id('detail-layers'), c.layers.map((layer, i) => ({layer, i})), ({i}) => i, () => makeElement('tr'), (tr, {layer, i}) =>
    fillCells(tr, [number(i + 1), `${layer.path}${layer.as ? ` as ${layer.as}` : ''}`, layer.server || 'its own url', layer.type,
      layer.absent ? 'absent (it is optional)' : etag(layer.version)], ['layer', 'path', 'server', 'type', 'version']));
}

function checkSays(check) {
  if (check.last) return `${check.last.why} (${ago(last.now_ms - check.last.at_ms)})`;
  return check.rejections ? 'forgotten by now' : 'no objection';
}

function showChecks(c) {
  syncChildren(id('detail-checks'), c.checks, (k) => k.name, () => makeElement('tr'), (tr, k) =>
    fillCells(tr, [k.name === 'operator' ? "operator's rollback" : k.name, k.name === 'operator' ? '\u2013' : number(k.rejections), checkSays(k)], ['check', 'rejections', 'what it said last']));
}

/* ---- versions ---- */

const samePick = (a, b) => a && b && a.held === b.held && a.to === b.to;

function pickButton(pick, name) {
  const b = makeElement('button', '', 'Changes');
  b.type = 'button';
  b.setAttribute('aria-label', `Changes of ${name}`);
  b.addEventListener('click', () => {
    detail.pick = pick;
    detail.diff = null;
    showDetail();
    poll();
  });
  return b;
}

function versionStatus(v) {
  if (v.published) return 'current';
  if (!v.rejected) return '';
  return v.rejected.by === 'probe' || v.rejected.by === 'operator' ? `rolled back by the ${v.rejected.by}` : `rejected by the ${v.rejected.by}`;
}

/* What is held back, then what the state directory has. */
function findVersions() {
  const c = detail.config;
  const rows = detail.history.versions.map((v, i, all) => ({key: String(v.generation), v, pick: {held: false, to: v.generation,
    from: i + 1 < all.length ? all[i + 1].generation : null}}));
  if (c.rejected) rows.unshift({key: 'held', v: null, pick: {held: true, to: null, from: c.generation}});
  return rows;
}

function fillVersion(tr, {v, pick}) {
  const c = detail.config;
  if (!tr.button) {
    tr.button = pickButton(pick, v ? `generation ${v.generation}` : 'the version that is held back');
    tr.cell = makeElement('span');
    tr.status = makeElement('span', 'why note');
    tr.words = makeElement('span');
    tr.cell.append(tr.words, tr.status);
  }
  changeAttribute(tr.button, 'aria-pressed', String(Boolean(samePick(pick, detail.pick))));
  tr.button.hidden = !v ? false : pick.from === null || Boolean(v.error);
  setText(tr.words, !v ? REJECTED[c.rejected.by] || `rejected by the ${c.rejected.by}` : v.error || whyText(v));
  setText(tr.status, v ? versionStatus(v) : c.rejected.why || '');
  const published = !v ? 'not published' : v.error ? '\u2013' : v.published_ms === null ? 'not known (an older agent)' : ago(last.now_ms - v.published_ms);
  if (!tr.time) tr.time = v && v.published_ms ? makeTime(v.published_ms, published) : makeElement('span');
  setText(tr.time, published);
  fillCells(tr, [v ? number(v.generation) : '\u2013', tr.time, tr.cell, etag(v ? v.version : c.rejected.version),
    v && v.bytes !== undefined ? number(v.bytes) : '\u2013', tr.button], ['generation', 'published', 'why', 'version', 'bytes', 'changes']);
}

const REJECTED = {pin: 'held by the pin', rollout: 'held by the rollout', operator: 'rolled back by an operator', probe: 'rolled back by its probe'};

function showVersions() {
  syncChildren(id('detail-versions'), findVersions(), (r) => r.key, () => makeElement('tr'), fillVersion);
  id('detail-more').hidden = !detail.history.truncated;
}

/* ---- differences ---- */

function valueText(change, side) {
  if (change[side] === undefined) return undefined;
  return change.masked ? MASK : short(typeof change[side] === 'string' && change[side] === MASK ? MASK : JSON.stringify(change[side]));
}

function overrideNote(change) {
  const side = change.overridden_after !== undefined ? 'after' : 'before';
  const key = change[`overridden_${side}`];
  if (key === undefined) return '';
  const server = valueText({...change, server: change[`server_${side}`]}, 'server');
  return side === 'after' ? `an override of ${key}; the server has ${server === undefined ? 'no value' : server}` :
    `an override of ${key} was in effect before; the server had ${server === undefined ? 'no value' : server}`;
}

function diffLine(change, note) {
  const li = changeLine({op: change.change, key: change.path, old: valueText(change, 'before'), new: valueText(change, 'after')});
  const text = note || overrideNote(change);
  if (text) li.lastChild.append(makeElement('span', 'why note', text));
  return li;
}

function makeDiff({why, answer: diff}) {
  if (why) return [makeElement('p', 'origin', `It cannot be compared: ${why}`)];
  const parts = [];
  const changes = diff.changes || [];
  const hidden = diff.hidden || [];
  if (diff.changes === null) {
    parts.push(makeElement('p', 'origin', diff.equal ? 'The same bytes.' :
      `It has no keys to compare: ${number(diff.from.bytes)} bytes became ${number(diff.to.bytes)}.`));
  } else if (!changes.length && !hidden.length) {
    parts.push(makeElement('p', 'origin', 'The same values.'));
  }
  const ul = makeElement('ul', 'diff');
  ul.append(...changes.slice(0, MOST_LINES).map((c) => diffLine(c)),
    ...hidden.slice(0, MOST_LINES).map((c) => diffLine(c, `hidden by an override of ${c.override}: the value in effect stays`)));
  if (ul.childElementCount) parts.push(ul);
  const more = changes.length - MOST_LINES + (diff.more || 0);
  if (more > 0) parts.push(makeElement('p', 'origin', `and ${number(more)} more: pullet diff ${detail.name}`));
  return parts;
}

/* Over TCP there are only the last publications of all configs, without values. */
function makePublicDiff(pick) {
  const found = !pick.held && lastChanges && lastChanges.publications.find((p) => p.config === detail.name && p.generation === pick.to);
  if (found) return makeChanges(found);
  return [makeElement('p', 'origin', pick.held ? 'What is held back is compared on the control socket only.' :
    'This difference is shown on the control socket only.')];
}

function showDiff() {
  const pick = detail.pick;
  const isPublic = last.status.audience === 'public';
  id('detail-tunnel').hidden = !isPublic;
  setText(id('detail-ssh'), `ssh -L 8377:${last.status.runtime_dir}/control.sock ${last.status.host}`);
  if (!pick) {
    setText(id('detail-diff-title'), 'Changes');
    id('detail-diff').replaceChildren(makeElement('p', 'empty', 'There are no two versions to compare.'));
    return;
  }
  setText(id('detail-diff-title'), pick.held ? `Changes from generation ${number(pick.from)} to the version that is held back` :
    `Changes from generation ${number(pick.from)} to ${number(pick.to)}`);
  const shownKey = JSON.stringify([detail.name, pick, isPublic, detail.diff ? detail.diff.key : null, isPublic && known]);
  if (id('detail-diff').shown === shownKey) return;
  id('detail-diff').shown = shownKey;
  id('detail-diff').replaceChildren(...(isPublic ? makePublicDiff(pick) : detail.diff ? makeDiff(detail.diff) :
    [makeElement('p', 'empty', 'asking the agent')]));
}

/* ---- the time line ---- */

/* Of an event: the kind of its mark, its word. */
const EVENTS = {
  published: ['ok', 'published'], recovered: ['ok', 'recovered'], reloaded: ['ok', 'reloaded'], 'probe passed': ['ok', 'probe passed'],
  rejected: ['bad', 'rejected'], failed: ['bad', 'failed'], 'reload failed': ['bad', 'reload failed'], 'probe failed': ['bad', 'probe failed'],
  held: ['warn', 'held'], restored: ['warn', 'restored'], decided: ['unknown', 'operator'], started: ['unknown', 'agent started'],
};

function eventText(e) {
  const text = e.text || '';
  switch (e.event) {
    case 'published': return `generation ${number(e.generation)}: ${whyText(e)}`;
    case 'rejected': return `by the ${e.by}: ${text}`;
    case 'held': return `a new version, by the ${e.by}${text ? `: ${text}` : ''}`;
    case 'failed': return `${e.by ? `${e.by}: ` : ''}${text}`;
    case 'restored': return `files that others changed: ${text}`;
    case 'reloaded': return `generation ${number(e.generation)}`;
    case 'probe passed': return `generation ${number(e.generation)}`;
    default: return text;
  }
}

/* What the agent noted, what the history has beside it, and the agent's start; the newest first. */
function findEvents() {
  const noted = detail.events.events.map((e) => (e.event === 'published' ? {...e, cause: e.by, origin: e.by === 'operator' || e.by === 'pin' || !e.text ? 'pull' : e.text,
    by: e.by === 'operator' || e.by === 'pin' ? e.text : null} : e));
  const has = new Set(noted.filter((e) => e.event === 'published').map((e) => e.generation));
  const kept = detail.history.versions.filter((v) => v.published_ms && !has.has(v.generation))
    .map((v) => ({at_ms: v.published_ms, event: 'published', generation: v.generation, cause: v.cause, by: v.by, origin: v.origin, times: 1}));
  const start = {at_ms: last.status.started_ms, event: 'started', generation: 0, by: null, text: `pullet ${last.status.version}`, times: 1};
  return [...noted, ...kept, start].map((e, i) => ({...e, i})).sort((a, b) => b.at_ms - a.at_ms || a.i - b.i).slice(0, MOST_EVENTS);
}

function fillEvent(li, e) {
  if (!li.mark) {
    const [kind, word] = EVENTS[e.event] || ['unknown', e.event];
    li.mark = makeElement('span', 'state', word);
    li.mark.dataset.state = kind;
    li.text = makeElement('span', 'text');
    li.when = makeTime(e.at_ms);
    li.append(li.when, li.mark, li.text);
  }
  li.when.dateTime = new Date(e.at_ms).toISOString();
  setText(li.when, MOMENT.format(e.at_ms));
  setText(li.text, `${eventText(e)}${e.times > 1 ? ` (${number(e.times)} times)` : ''}`);
}

function showEvents() {
  syncChildren(id('detail-events'), findEvents(), (e) => JSON.stringify([e.event, e.generation, e.by, e.text, e.event === 'failed' ? 0 : e.at_ms]),
    () => makeElement('li'), fillEvent);
}

/* ---- the whole view ---- */

function showDetail() {
  const c = last && last.status.configs.find((config) => config.name === detail.name);
  setText(id('detail-title'), detail.name);
  id('detail-none').hidden = !last || Boolean(c);
  id('detail-state').hidden = id('detail-body').hidden = !c || !detail.config;
  if (!c || !detail.config) return;
  setState(id('detail-state'), c.rating.kind, c.state);
  document.title = `${c.state === 'ok' ? '' : `${c.state} \u00b7 `}${c.name} \u00b7 ${last.status.host} \u00b7 pullet`;
  setText(id('detail-source'), c.url || '');
  syncChildren(id('detail-chips'), findChips(c), (chip) => chip, (chip) => makeElement('span', 'chip', chip), () => {});
  const forward = (c.rejected && c.rejected.forward) || [];
  syncChildren(id('detail-remarks'), [...c.remarks, ...forward.map((text, i) => ({what: `forward ${i}`, text, tone: 'note'}))], (w) => w.what,
    () => makeElement('li', 'why'), (e, w) => {
      changeAttribute(e, 'class', `why ${w.tone}`);
      setText(e, w.text);
    });
  showFacts({...detail.config, ...c});
  showLayers(detail.config);
  showVersions();
  showChecks(detail.config);
  showDiff();
  showEvents();
}

/* What is compared when nobody has picked: what is held back, else the current version with the one before. */
function choosePick() {
  const rows = findVersions();
  const picked = detail.pick && rows.find((r) => samePick(r.pick, detail.pick));
  const first = rows.find((r) => r.pick.held || (r.v.published && r.pick.from !== null)) || rows.find((r) => r.pick.from !== null && !(r.v && r.v.error));
  detail.pick = picked ? picked.pick : first ? first.pick : null;
}

/* Asks for what is shown, and has changed. */
async function askDetail(now) {
  const view = detail;
  const name = encodeURIComponent(view.name);
  if (!last.status.configs.some((c) => c.name === view.name)) return;
  const config = await getJson(`v1/configs/${name}`);
  const events = await getJson(`v1/configs/${name}/events`);
  const key = JSON.stringify([now, config.rejected]);
  const history = view.key === key ? view.history : await getJson(`v1/configs/${name}/history`);
  if (detail !== view) return;
  Object.assign(view, {config, events, history, key});
  choosePick();
  const pick = view.pick;
  const diffKey = JSON.stringify([pick, key]);
  if (!pick || last.status.audience === 'public' || (view.diff && view.diff.key === diffKey)) return;
  let diff;
  try {
    diff = {key: diffKey, answer: pick.held ? await getJson(`v1/configs/${name}/diff?held=1`) :
      await getJson(`v1/configs/${name}/diff?from=${pick.from}&to=${pick.to}`)};
  } catch (error) {
    if (!error.refused) throw error;
    diff = {key: diffKey, why: error.message}; // it cannot be read, or is gone
  }
  if (detail === view && samePick(view.pick, pick)) view.diff = diff;
}

/* Brings the view up to date; an answer that is missing now comes with the next poll. */
async function pollDetail(now) {
  const view = detail;
  try {
    await askDetail(now);
  } finally {
    if (detail && detail === view) showDetail();
  }
}

/* The address has changed: one config, or all. */
function openPlace(first) {
  const name = readPlace();
  if ((detail && detail.name) === name) return;
  if (detail) leaving = detail.name;
  detail = name === null ? null : {name, pick: null};
  id('detail').hidden = name === null;
  id('overview').hidden = name !== null;
  if (name !== null) {
    showDetail();
    if (!first) id('detail').focus();
    scrollTo(0, 0);
    poll();
    return;
  }
  if (last) showStatusTitle(last.status);
  showConfigs();
  const row = [...id('config-rows').children].find((tr) => tr.key === leaving);
  if (row) row.name.focus();
}

addEventListener('hashchange', () => openPlace(false));
id('skip').addEventListener('click', (event) => {
  if (!detail) return;
  event.preventDefault();
  id('detail').focus();
});
openPlace(true);
