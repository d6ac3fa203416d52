import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

/**
 * A Secret as Kubernetes mounts it: each file is a link into `..data`, which is a link that is
 * replaced in one step when the Secret changes.
 */
export interface MountedSecret {
  /** `NAME_FILE` settings of its files. */
  settings: Record<string, string>;
  replace(values: Record<string, string>): void;
}

/** Mounts a Secret; it is deleted when the test ends. */
export function mountSecret(values: Record<string, string>): MountedSecret {
  const folder = temporaryFolder();
  let version = 0;
  function replace(next: Record<string, string>): void {
    version += 1;
    mkdirSync(path.join(folder, `..${version}`));
    for (const [name, value] of Object.entries(next)) writeFileSync(path.join(folder, `..${version}`, name), value);
    symlinkSync(`..${version}`, path.join(folder, '..data_tmp'));
    renameSync(path.join(folder, '..data_tmp'), path.join(folder, '..data'));
    rmSync(path.join(folder, `..${version - 1}`), { recursive: true, force: true });
  }
  replace(values);
  for (const name of Object.keys(values)) symlinkSync(path.join('..data', name), path.join(folder, name));
  const settings = Object.keys(values).map((name) => [`${name}_FILE`, path.join(folder, name)]);
  return { settings: Object.fromEntries(settings), replace };
}
