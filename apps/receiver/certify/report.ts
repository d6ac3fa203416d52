import { printable } from '#runtime/command-line.ts';
import type { Judged, Report, Result } from './certify.ts';

const words: Record<Result, string> = { passed: 'ok', failed: 'FAILED', notJudged: 'not judged' };

/**
 * Returns a report as text: a line for each scenario, and for a failed one what was found, why and the fix. Those that
 * are not judged are names below their reason.
 */
export function reportText(report: Report): string {
  const counts = countResults(report);
  const isJudged = ({ result }: Judged) => result !== 'notJudged';
  const reasons = Map.groupBy(
    report.scenarios.filter((each) => !isJudged(each)),
    ({ found }) => found ?? '',
  );
  const lines = [...report.scenarios.filter(isJudged).flatMap(scenarioLines), ...[...reasons].flatMap(reasonLines)];
  const end = `${counts.passed} passed, ${counts.failed} failed, ${counts.notJudged} not judged.`;
  return [...lines, '', end].map(printable).join('\n');
}

/** Returns how many scenarios have each result. */
export function countResults({ scenarios }: Report): Record<Result, number> {
  const count = (result: Result) => scenarios.filter((each) => each.result === result).length;
  return { passed: count('passed'), failed: count('failed'), notJudged: count('notJudged') };
}

function scenarioLines({ name, title, why, fix, result, found }: Judged): string[] {
  const line = `${words[result].padEnd(12)}${name.padEnd(34)}${title}`;
  if (result === 'passed') return [line];
  return [line, ...[`Found: ${found}`, `Why:   ${why}`, `Fix:   ${fix}`].map(indent)];
}

const reasonLines = ([reason, scenarios]: [string, Judged[]]): string[] => [
  `${words.notJudged.padEnd(12)}${reason}`,
  indent(scenarios.map(({ name }) => name).join(', ')),
];

const indent = (line: string): string => `            ${line}`;
