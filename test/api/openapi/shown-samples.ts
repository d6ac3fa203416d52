/** The samples of a running API's reference, and what each has to print. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { OnFinished } from '#test/setup.ts';
import { setupDatabase, startTestApi } from '#test/setup.ts';
import { type Language, languages } from '../../../apps/api/docs/samples.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';

export interface ShownSamples {
  /** The variables that the page says to set, with a real key. */
  environment: Record<string, string>;
  /** Reads with their samples, and the JSON that the API answers to each. */
  reads: { id: string; code: Record<Language, string>; body: unknown }[];
}

/** Starts an API whose public URL is its address, and takes each sample from its Markdown as it is. */
export async function readShownSamples(onFinished: OnFinished): Promise<ShownSamples> {
  const port = String(await getFreePort());
  const { database, make } = await setupDatabase(onFinished);
  const api = await startTestApi(database, { PORT: port, BASE_URL_US: `http://127.0.0.1:${port}` }, [], onFinished);
  const { key, orgId } = await make.apiKey();
  const page = await (await api.get('/docs.md')).text();
  const [, variables = ''] = /^Every sample reads these variables:\n\n```sh\n([\s\S]*?)\n```$/m.exec(page) ?? [];
  const shown = Object.fromEntries(variables.split('\n').map((line) => line.split(/^export |='|'$/).filter(Boolean)));
  const environment = { ...shown, ORG_API_KEY: key, ORG_ID: orgId };
  const reads: ShownSamples['reads'] = [];
  for (const { operationId: id, resource } of endpoints) {
    const [, rest = ''] = page.split(`{orgId}${resource}\` (\`${id}\`)`);
    const [part = ''] = rest.split(/^##/m);
    const code = Object.fromEntries(
      languages.map(({ id: language, fence }) => [
        language,
        new RegExp(`^\`{3}${fence}\\n([\\s\\S]*?)\\n\`{3}$`, 'm').exec(part)?.[1] ?? '',
      ]),
    );
    const body = await (await api.get(`/v1/orgs/${orgId}${resource}`, { key })).json();
    reads.push({ id, code: code as Record<Language, string>, body });
  }
  return { environment, reads };
}

/** Separates what one process prints for each read. */
export const separator = '\u0001';

/** Asserts that each read printed its body. */
export function expectBodies(reads: ShownSamples['reads'], output: string): void {
  const printed = output.split(separator).slice(0, -1);
  expect(printed).toHaveLength(reads.length);
  expect(printed.map((each) => JSON.parse(each))).toEqual(reads.map(({ body }) => body));
}

/** Writes a file into a folder. Returns its path. */
export function write(folder: string, name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}
