import { readFileSync } from 'node:fs';
import { type Verification, verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { printable } from '#runtime/command-line.ts';
import { UsageError } from '#runtime/errors.ts';
import { readCapture } from './capture.ts';

/**
 * Checks a captured request offline.
 *
 * @throws UsageError when the file cannot be read or contains no request.
 */
export function verifyFile(options: {
  file: string;
  secrets: string[];
  toleranceSeconds: number;
  now?: Date;
}): Verification {
  const { file, ...rest } = options;
  const capture = readCapture(readWhole(file));
  if (capture === null)
    throw new UsageError(
      `--verify: ${file} contains no request: give headers, an empty line and the body, or JSON {"headers", "body"}.`,
    );
  return verifyDelivery({ ...capture, ...rest });
}

function readWhole(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`--verify: ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Returns the checks as text, one line each, and a last line with the result. */
export function verificationText({ ok, checks }: Verification): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(
    (check) => `${check.ok ? 'ok    ' : 'FAILED'}  ${check.name.padEnd(width)}  ${check.explanation}`,
  );
  const failed = checks.filter((check) => !check.ok).length;
  const end = ok ? 'It verifies.' : `The delivery does not verify: ${failed} of ${checks.length} checks failed.`;
  return [...lines, '', end].map(printable).join('\n');
}
