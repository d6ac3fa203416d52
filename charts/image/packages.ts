/** Decides which packages and files the image contains. Pure: lock and names in, decisions out. */

/**
 * The part of a package-lock.json that is read here: its `packages`, by path (`''` is this
 * package).
 */
export interface LockedPackage {
  version?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/**
 * The packages with which Temporal's worker bundles workflows. The image has a prebuilt bundle, so
 * they and everything that only they need are excluded (100 packages, including a compiler). The
 * worker loads three of them when it starts, so the image has a placeholder of each.
 */
const bundlerPackages = ['webpack', 'memfs', 'unionfs', '@swc/core', 'swc-loader', 'source-map-loader'] as const;
export const placeholders = ['webpack', 'memfs', 'unionfs'] as const;

/** The code of a placeholder: it loads, and fails with an explanation when it is used. */
export const placeholderCode = `exports.webpack = () => {
  throw new Error('This image has no bundler: set WORKFLOW_BUNDLE to the bundle that it carries, ' +
    '/app/workflows.bundle.json.');
};
`;

/**
 * Returns sorted paths (`node_modules/…`) of the packages that are needed at run time: those that
 * Node's resolution reaches through the lock, without `leftOut` and what only they need. The
 * optional dependencies of this package (servers for development) are excluded.
 *
 * @throws Error when the lock does not contain a needed package.
 */
export function listRuntimePackages(
  packages: Record<string, LockedPackage>,
  leftOut: readonly string[] = bundlerPackages,
): string[] {
  const reached = new Set<string>();
  const open = [''];
  for (let from = open.pop(); from !== undefined; from = open.pop()) {
    const needed = neededBy(packages[from] ?? {}, from === '');
    const wanted = needed.filter(([name]) => !leftOut.includes(name) && !name.startsWith('@types/'));
    const found = wanted.flatMap(([name, isOptional]) => find(packages, from, name, isOptional) ?? []);
    const added = found.filter((path) => !reached.has(path));
    for (const path of added) reached.add(path);
    open.push(...added);
  }
  return [...reached].sort();
}

/**
 * Returns the names of needed packages, and whether each is optional. Of this package, only
 * `dependencies`.
 */
function neededBy(entry: LockedPackage, isOurs: boolean): [string, boolean][] {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = entry;
  const isOptional = (name: string) =>
    name in optionalDependencies || (!(name in dependencies) && peerDependenciesMeta[name]?.optional === true);
  const names = Object.keys(isOurs ? dependencies : { ...dependencies, ...optionalDependencies, ...peerDependencies });
  const needed = names.map((name): [string, boolean] => [name, isOptional(name)]);
  return isOurs ? needed.filter(([, optional]) => !optional) : needed;
}

/**
 * Returns where a `require` of `name` in the package at `from` resolves: the nearest `node_modules`
 * above that contains it. Null for an optional package that is not installed.
 */
function find(packages: Record<string, LockedPackage>, from: string, name: string, optional: boolean): string | null {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const candidate = `${base === '' ? '' : `${base}/`}node_modules/${name}`;
    if (packages[candidate] !== undefined) return candidate;
    if (base !== '') continue;
    if (optional) return null;
    throw new Error(`package-lock.json lacks ${name}, which ${from} needs`);
  }
}

/** Folders of a package with its authors' material, which does not run. */
const workFolders = /(^|\/)(tests?|__tests__|benchmarks?|examples?|\.github|sdk-core)\//;

/**
 * Returns whether a file of a package is included, by its path in the package. Excluded are source
 * maps, TypeScript, Rust and style sources, tests, documents, and native modules of other systems
 * (`releases/<target>/` is Temporal's layout; `target` is this image's). Licenses are always
 * included.
 */
export function isPackageFile(file: string, target: string): boolean {
  const parts = file.split('/');
  const name = parts.at(-1) ?? '';
  const release = parts.indexOf('releases');
  if (release >= 0 && name.endsWith('.node')) return parts[release + 1] === target;
  if (/^(licen[cs]e|notice|copying|copyright)/i.test(name)) return true;
  // Heroicons have four sizes and styles; the console uses those of 16 pixels.
  if (/^(20|24)\/(solid|outline)\//.test(file)) return false;
  if (workFolders.test(file)) return false;
  if (/\.(map|md|markdown|flow|rs|tsbuildinfo)$/.test(name) || /\.[cm]?tsx?$/.test(name)) return false;
  return !/^(Cargo\.|tsconfig|\.eslint|\.prettier|\.npmignore|\.editorconfig)/.test(name);
}

/**
 * Returns whether a file of org-api is included, by its path in the repository: what runs, and
 * nothing for development.
 */
export function isAppFile(file: string): boolean {
  if (file === 'package.json' || file === 'LICENSE') return true;
  if (!/^(apps|workflows)\//.test(file) || /^apps\/(dev|console\/pictures)\//.test(file)) return false;
  return /\.(ts|js|json|lua|css|svg|html|ico|png|woff2)$/.test(file);
}
