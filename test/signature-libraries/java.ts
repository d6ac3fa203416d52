/**
 * Prepares the Java receiver: Maven downloads the dependencies in pom.xml and keeps them in its
 * repository folder.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runTool } from '#test/tools.ts';
import { getFolder } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

/** Builds the receiver outside the clone in 10 s; the first time on a machine in about a minute. */
export async function prepareJava(): Promise<ReceiverProgram> {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-receiver-java-'));
  const dispose = () => rmSync(folder, { recursive: true, force: true });
  try {
    await runTool(['mvn', '--quiet', '--batch-mode', `-DbuildFolder=${folder}`, 'package'], {
      what: 'The Java receiver could not be built',
      remedy: 'install a JDK 17 or newer and Maven 3.8 or newer, and check the network and the Maven repository',
      cwd: getFolder('java'),
    });
  } catch (error) {
    dispose();
    throw error;
  }
  const java = ['java', '-jar', path.join(folder, 'receiver.jar')] as const;
  return { check: [...java, 'check'], serve: [...java, 'serve'], dispose };
}
