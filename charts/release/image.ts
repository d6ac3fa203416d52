import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openStore } from '../image/buildah.ts';
import { listContents } from '../image/contents.ts';
import type { Contents } from './sbom.ts';

/** An image for one or several architectures, and the packages that its file systems contain. */
export interface OciImage extends Omit<Contents, 'node'> {
  /** Digest of the index of the images. */
  digest: string;
}

/** Joins images (docker-archives), one an architecture, under one index, and writes it as an OCI layout. Runs none. */
export function joinImages(archives: readonly string[], layout: string): OciImage {
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-release-'));
  try {
    const buildah = openStore(work);
    const list = 'localhost/org-api:all';
    buildah('manifest', 'create', list);
    for (const archive of archives) buildah('manifest', 'add', list, `docker-archive:${archive}`);
    buildah('manifest', 'push', '--quiet', '--all', '--format', 'oci', list, `oci:${layout}`);
    const contents = archives.map(listContents);
    return {
      digest: readDigest(layout),
      npm: contents.flatMap(({ npm }) => npm),
      debian: contents.flatMap(({ debian }) => debian),
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function readDigest(layout: string): string {
  const index = JSON.parse(readFileSync(path.join(layout, 'index.json'), 'utf8')) as {
    manifests: { digest: string }[];
  };
  return index.manifests[0]?.digest ?? '';
}
