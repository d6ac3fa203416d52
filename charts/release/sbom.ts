import type { DebianPackage, NpmPackage } from '../image/contents.ts';

interface Component {
  type: string;
  name: string;
  version: string;
  purl: string;
  'bom-ref': string;
}

/** The parts of a CycloneDX document that are read or written here. */
export interface Bom {
  bomFormat: string;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

/** What an image contains, as read from its file system. */
export interface Contents {
  npm: readonly NpmPackage[];
  debian: readonly DebianPackage[];
  /** The version of Node. */
  node: string;
}

/**
 * Returns the SBOM of the image: of npm's document about the whole lock, what the image contains, with
 * Node and Debian's packages of each architecture. `npm sbom --omit dev` leaves out packages that
 * development needs too, so npm is not asked which ones the image has.
 *
 * @throws Error when the image has a package that npm's document does not know.
 */
export function describeContents(lock: Bom, { npm, debian, node }: Contents): Bom {
  const known = new Map(lock.components.map((component) => [component['bom-ref'], component]));
  const refs = new Set(npm.map(({ name, version }) => `${name}@${version}`));
  const components = [...refs].sort().map((ref) => {
    const component = known.get(ref);
    if (component === undefined) throw new Error(`the image has ${ref}, which package-lock.json does not list`);
    return component;
  });
  const base = [
    { type: 'application', name: 'node', version: node, purl: `pkg:generic/node@${node}` },
    ...debian.map(({ name, version, architecture }) => ({
      type: 'library',
      name,
      version,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`,
    })),
  ];
  const product = lock.metadata.component;
  const isIncluded = (ref: string) => ref === product['bom-ref'] || refs.has(ref);
  return {
    ...lock,
    // npm names the folder that it runs in.
    metadata: { ...lock.metadata, component: { ...product, type: 'application', name: 'org-api' } },
    components: [...components, ...base.map((one) => ({ ...one, 'bom-ref': one.purl }))],
    dependencies: lock.dependencies
      .filter(({ ref }) => isIncluded(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(isIncluded) })),
  };
}
