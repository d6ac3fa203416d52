import { appendFileSync } from 'node:fs';
import type { Reporter, TestCase } from 'vitest/node';

/**
 * Appends each test that passed at its second try, with the error of the first one, to the file that
 * RETRIED_TESTS names. `.ci/run` prints it at its end: such a test is a defect that would scroll by.
 */
export default class RetriedTests implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const file = process.env.RETRIED_TESTS;
    if (file === undefined || (test.diagnostic()?.retryCount ?? 0) === 0) return;
    const [error] = test.result().errors ?? [];
    const reason = error?.message.split('\n')[0] ?? 'no error was recorded';
    appendFileSync(file, `${test.module.relativeModuleId}: ${test.fullName}\n  first try: ${reason}\n`);
  }
}
