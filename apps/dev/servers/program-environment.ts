/** The variables that programs get: named ones, never all of the shell's. */

/** What changes where programs are found, and nothing of what they do. */
const ofEveryProgram = ['PATH', 'HOME'];

/** How this machine reaches other hosts, and where Go keeps what it has downloaded. */
const ofDownloads = [
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'XDG_CACHE_HOME',
  'TMPDIR',
  'GOPROXY',
  'GOSUMDB',
  'GONOSUMDB',
  'GOPRIVATE',
  'GOPATH',
  'GOCACHE',
  'GOMODCACHE',
  'GOTOOLCHAIN',
];

/** Returns the environment of a program that needs no other host. */
export const programEnvironment = (): Record<string, string> => ({ ...pick(ofEveryProgram), LC_ALL: 'C', TZ: 'UTC' });

/** Returns the environment of a program that downloads. */
export const downloadEnvironment = (): Record<string, string> => ({ ...programEnvironment(), ...pick(ofDownloads) });

function pick(names: readonly string[]): Record<string, string> {
  const set = names.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(set.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
