/** Prepares the Node receiver: its libraries are development dependencies of this project. */
import path from 'node:path';
import { folderOf } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

export async function prepareNode(): Promise<ReceiverProgram> {
  const programOf = (name: string) => [process.execPath, path.join(folderOf('node'), name)] as const;
  return { check: programOf('check.mjs'), serve: programOf('receiver.mjs') };
}
