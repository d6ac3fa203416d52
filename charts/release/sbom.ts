import type { DebianPackage } from '../image/oci.ts';

/** The part of a CycloneDX document that is completed here. */
export interface Bom {
  bomFormat: string;
  components: { type: string; name: string; version: string; purl: string; 'bom-ref'?: string }[];
}

/**
 * Adds to npm's document what else is in the image: Node, and Debian's packages of both
 * architectures.
 */
export function completeBom(bom: Bom, base: { packages: readonly DebianPackage[]; node: string }): Bom {
  const added = [
    { type: 'application', name: 'node', version: base.node, purl: `pkg:generic/node@${base.node}` },
    ...base.packages.map(({ name, version, architecture }) => ({
      type: 'library',
      name,
      version,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`,
    })),
  ];
  return { ...bom, components: [...bom.components, ...added.map((one) => ({ ...one, 'bom-ref': one.purl }))] };
}
