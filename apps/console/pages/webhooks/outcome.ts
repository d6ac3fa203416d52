import type { TestResult } from '#workflows/send-test/types.ts';
import { testEventStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { type Html, html } from '../../web/html.ts';

/** How a receiver took a test event: what came, what it means, what to do. */
export function testOutcome({ eventId, delivered, status, cause, explanation, durationMs }: TestResult): Html {
  return detailList([
    ['Result', testEventStatus(delivered)],
    ['Status', status === null ? 'none came' : String(status)],
    ['Took', `${durationMs.toLocaleString('en')} ms`],
    ['Why', html`${explanation} <code>${cause}</code>`],
    ['Event', html`<code>${eventId}</code>`],
  ]);
}
