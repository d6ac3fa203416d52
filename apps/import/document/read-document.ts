import type { Region } from '#domain/contract/regions.ts';
import { DocumentReader } from './document-reader.ts';
import { documentLayout } from './format.ts';
import { checks } from './item-check.ts';
import { type Bytes, itemSizeMax, readTokens } from './json-tokens.ts';
import { type ProblemList, UnreadableDocumentError } from './problems.ts';
import { type Progress, readingProgress } from './progress.ts';
import type { Staging } from './staging.ts';

/** The document's own fields; a wrong field is absent and among the problems. */
interface DocumentHead {
  region?: Region;
  asOf?: string;
}

/**
 * Reads a document to its end, checks each object by itself and stages it. Returns null when
 * reading had to stop, so that checks across objects would mislead.
 */
export async function readDocument(options: {
  source: Bytes;
  staging: Staging;
  problems: ProblemList;
  progress: Progress;
}): Promise<DocumentHead | null> {
  const { source, staging, problems, progress } = options;
  let head: DocumentHead = {};
  const reader = new DocumentReader(
    documentLayout,
    (item) => {
      const checked = checks[item.kind](item.path, item.value);
      for (const { path, problem } of checked.problems) problems.add(path, problem);
      if (item.kind === 'document') head = checked.value;
      else staging.add({ ...item, kind: item.kind }, checked.value);
    },
    (path, problem) => problems.add(path, problem),
  );
  const readOn = readingProgress(staging.counts, progress);
  let unsentBytes = 0;
  let empty = true;
  try {
    for await (const { tokens, bytes, blank } of readTokens(source)) {
      for (const token of tokens) reader.accept(token);
      empty &&= blank;
      unsentBytes += bytes;
      if (unsentBytes >= itemSizeMax) {
        await staging.flush();
        unsentBytes = 0;
      }
      readOn(bytes);
    }
    await staging.flush();
    if (empty) throw new UnreadableDocumentError('$', 'is empty: no JSON document in the file');
    if (!reader.isComplete)
      throw new UnreadableDocumentError('$', 'ends before the document does: the file is cut off');
  } catch (error) {
    if (!(error instanceof UnreadableDocumentError)) throw error;
    problems.add(error.problem.path, error.problem.problem);
    return null;
  }
  return head;
}
