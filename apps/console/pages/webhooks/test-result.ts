import type { Html } from '#runtime/pages/html.ts';
import type { TestResult } from '#workflows/send-test/types.ts';
import { copyableId } from '../../components/copy.ts';
import { testEventStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';

/** Returns the result of a test event, with its cause and what to do. */
export function testResultDetails({ eventId, delivered, status, explanation, durationMs }: TestResult): Html {
  return detailList([
    ['Result', testEventStatus(delivered)],
    ['Response', status === null ? 'No response' : String(status)],
    ['Duration', `${durationMs.toLocaleString('en')} ms`],
    !delivered && ['Cause', explanation],
    ['Event ID', copyableId('event ID', eventId)],
  ]);
}
