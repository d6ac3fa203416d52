import { printable } from '#runtime/command-line.ts';
import type { Judged, Report, Result } from './certify.ts';

const words: Record<Result, string> = { passed: 'ok', failed: 'FAILED', notJudged: 'not judged' };

/** Returns a report as text: a line for each scenario, and for a failed one what was found, why and the fix. */
export function reportText(report: Report): string {
  const counts = countResults(report);
  const end = `${counts.passed} passed, ${counts.failed} failed, ${counts.notJudged} not judged.`;
  return [...report.scenarios.flatMap(scenarioLines), '', end].map(printable).join('\n');
}

/** Returns how many scenarios have each result. */
export function countResults({ scenarios }: Report): Record<Result, number> {
  const count = (result: Result) => scenarios.filter((each) => each.result === result).length;
  return { passed: count('passed'), failed: count('failed'), notJudged: count('notJudged') };
}

function scenarioLines({ name, title, why, fix, result, found }: Judged): string[] {
  const line = `${words[result].padEnd(12)}${name.padEnd(34)}${title}`;
  if (result === 'passed') return [line];
  if (result === 'notJudged') return [line, `            ${found}`];
  return [line, `            Found: ${found}`, `            Why:   ${why}`, `            Fix:   ${fix}`];
}
