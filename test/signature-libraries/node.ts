/** Prepares the Node receiver: its libraries are development dependencies of this project. */
import path from 'node:path';
import { getFolder } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

export async function prepareNode(): Promise<ReceiverProgram> {
  const getProgram = (name: string) => [process.execPath, path.join(getFolder('node'), name)] as const;
  return { check: getProgram('check.mjs'), serve: getProgram('receiver.mjs') };
}
