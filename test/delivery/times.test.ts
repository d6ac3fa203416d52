import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import * as durations from '#delivery/times.ts';
import { defaultTimes } from '#domain/db/server.ts';
import { attemptTimeoutMs } from '#workflows/deliver-event/types.ts';
import schema from '../../charts/org-api/values.schema.json' with { type: 'json' };

/** The least that a stopping pod of the worker has. */
const podGraceMs = 1_000 * schema.properties.worker.properties.terminationGracePeriodSeconds.minimum;
const times = { ...durations, ...defaultTimes, attemptTimeoutMs, podGraceMs };
type Times = Record<keyof typeof times, number>;

/** What must fit into each duration, so that two posts of a delivery never overlap. */
const relations: Record<string, (t: Times) => boolean> = {
  'a post that begins as late as it may ends before its outcome is due': (t) =>
    t.postUntilMs > 0 && t.postUntilMs + t.postDeadlineMs <= t.recordUntilMs,
  'an outcome that is recorded at once, as late as its last try begins, leaves time for the report': (t) =>
    t.reportMs >= 1_000 && t.recordUntilMs + t.reportMs <= t.attemptTimeoutMs,
  'a pod that stops has time for the last try to record, which may wait for a connection first': (t) =>
    t.recordUntilMs + t.connectTimeoutMs + t.statementTimeoutMs + 1_000 <= t.podGraceMs,
  'a slot outlasts its attempt, also when clocks run apart and it is expired at once': (t) =>
    t.slotMs >= t.attemptTimeoutMs + 5_000,
  'a claim can be started and its attempt admitted while its slot is reserved': (t) =>
    t.reservedMs >= 2 * t.startDeadlineMs,
  'a reservation that is past its end is noticed long before the next one would be': (t) =>
    5 * t.repairEveryMs <= t.reservedMs,
  'a run that asks again does so many times before it may post no more': (t) => 100 * t.askAgainMs <= t.postUntilMs,
};

it.each(Object.entries(relations))('%s', (_relation, holds) => {
  expect(holds(times)).toBe(true);
});

it.each<Partial<Times>>([
  { postDeadlineMs: 15_000 },
  { postUntilMs: 9_000 },
  { recordUntilMs: 19_000 },
  { reportMs: 0 },
  { connectTimeoutMs: 20_000 },
  { podGraceMs: 25_000 },
  { attemptTimeoutMs: 25_000 },
  { slotMs: 20_000 },
  { reservedMs: 5_000 },
  { startDeadlineMs: 10_000 },
  { repairEveryMs: 5_000 },
  { askAgainMs: 1_000 },
])('a relation is broken with %j', (change) => {
  expect(Object.values(relations).every((holds) => holds({ ...times, ...change }))).toBe(false);
});

it('the drawing of an attempt in the README is to scale, and explains each duration that it shows', () => {
  const readme = readFileSync(path.join(import.meta.dirname, '../../apps/delivery/README.md'), 'utf8');
  const section = readme.split('\n## ').find((text) => text.startsWith('The time of an attempt')) ?? '';
  const lines = section.split('\n');
  const shown = lines.filter((line) => /^0 +\d/.test(line)).flatMap((line) => [...line.matchAll(/\d+/g)]);
  for (const { 0: seconds, index } of shown) expect(index, `${seconds} s`).toBe(3 * Number(seconds));
  const explained = lines.flatMap((line) => {
    const [, seconds, name] = /^\| (\d+) \| `(\w+)` \|/.exec(line) ?? [];
    return name === undefined ? [] : [{ seconds: Number(seconds), name: name as keyof Times }];
  });
  for (const { seconds, name } of explained) expect(times[name], name).toBe(1_000 * seconds);
  const drawn = new Set(shown.map(([seconds]) => Number(seconds)).filter((seconds) => seconds > 0));
  expect(drawn).toEqual(new Set(explained.map(({ seconds }) => seconds)));
  expect(explained).toHaveLength(7);
});
