import { expect, it } from 'vitest';
import type { AttemptLine } from '#delivery/attempt.ts';
import { createDeliveryTraces } from '#delivery/traces.ts';
import type { Tracing } from '#runtime/tracing.ts';

it('no phase of an attempt ends after the attempt, although each duration is rounded alone', () => {
  const spans: Parameters<Tracing['record']>[0][] = [];
  const timingsMs = { dns: 1, connect: 1, tls: 1, firstByte: 1, total: 3 };
  const line = { webhookId: 'w', run: 1, eventId: 'e', startedAtMs: 1_000, timingsMs } as AttemptLine;
  createDeliveryTraces({ record: (span) => void spans.push(span) }).attempted(line);
  expect(spans[0]?.events?.map(({ atMs }) => atMs)).toEqual([1_001, 1_002, 1_003, 1_003]);
  expect(spans[0]?.endedAtMs).toBe(1_003);
});
