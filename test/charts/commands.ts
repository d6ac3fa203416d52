import { spawnSync } from 'node:child_process';
import type { Manifest } from '#test/render-charts.ts';
import { helpText } from '../../apps/orgctl/help.ts';
import { nouns } from '../../apps/orgctl/nouns.ts';
import { getTool } from '../../charts/tools.ts';

const helm = await getTool('helm');
/** Verbs of external programs. For `temporal` only groups of commands are checked. */
const verbs: Record<string, readonly string[]> = {
  kubectl: [
    'apply',
    'create',
    'delete',
    'describe',
    'exec',
    'get',
    'logs',
    'patch',
    'port-forward',
    'rollout',
    'scale',
    'top',
    'wait',
  ],
  temporal: ['operator', 'task-queue', 'worker', 'workflow'],
  openssl: ['rand'],
  cosign: ['verify'],
  gh: ['attestation'],
  aws: ['s3', 's3api'],
  gcloud: ['storage'],
  npm: ['run'],
  curl: ['-H'],
  skopeo: ['copy', 'inspect'],
};
const plain = [
  'export',
  'url',
  'verify',
  'grep',
  'base',
  'echo',
  'printf',
  'tail',
  'tee',
  'sed',
  'cut',
  'mkdir',
  'ln',
  'cd',
  'for',
  'do',
];
const helps = new Map<string, string>();

/**
 * Returns the error in a command of a page, as a sentence; null when there is none. `manifests` are
 * the release's objects.
 */
export function findProblem(command: string, manifests: readonly Manifest[]): string | null {
  const [program = '', ...args] = command.split(/\s+/);
  if (plain.includes(program)) return null;
  if (program === 'orgctl') return orgctlProblem(args);
  if (program === 'helm') return helmProblem(args, manifests);
  const known = verbs[program];
  if (known === undefined) return `${program} is no program that a page may assume`;
  const verb = args[0] === '-n' ? args[2] : args[0];
  if (!known.includes(verb ?? '')) return `${program} has no ${verb}`;
  return program === 'kubectl' ? kubectlProblem(command, manifests) : null;
}

function orgctlProblem([noun = '', ...rest]: string[]): string | null {
  if (noun === '--help') return null;
  const verb = rest[0] === undefined || rest[0].startsWith('-') ? '' : rest[0];
  const usage = helpOfOrgctl(noun)
    .split('\n')
    .find((line) => line.startsWith(`orgctl ${[noun, verb].filter(Boolean).join(' ')}`));
  if (usage === undefined) return `orgctl has no ${noun} ${verb}`;
  const unknown = rest.filter((word) => word.startsWith('--') && !usage.includes(`${word} `));
  const required = [...usage.matchAll(/ (?<!\[)(--[a-z-]+) /g)].map(([, option = '']) => option);
  const missing = required.filter((option) => !rest.includes(option));
  return unknown.length + missing.length === 0
    ? null
    : `orgctl ${noun} ${verb}: unknown ${unknown}, missing ${missing}`;
}

/** Returns what `orgctl NOUN --help` prints; '' for an unknown noun. */
function helpOfOrgctl(noun: string): string {
  const known = nouns.find((one) => one.noun === noun);
  return known === undefined ? '' : helpText(nouns, known, null);
}

/** Returns a help text of Helm; cached, because starting it takes a tenth of a second. */
function askHelm(args: readonly string[]): string {
  const call = args.join(' ');
  const known = helps.get(call);
  if (known !== undefined) return known;
  const { stdout } = spawnSync(helm, [...args, '--help'], { encoding: 'utf8' });
  helps.set(call, stdout);
  return stdout;
}

function helmProblem([verb = '', ...rest]: string[], manifests: readonly Manifest[]): string | null {
  const stdout = askHelm([verb]);
  if (!stdout.includes(`helm ${verb} `)) return `helm has no ${verb}`;
  const unknown = rest.filter((word) => word.startsWith('--') && !stdout.includes(`${word.split('=')[0]} `));
  return unknown.length === 0 ? helmTrap(verb, rest, manifests) : `helm ${verb} has no ${unknown}`;
}

/** Arguments that Helm accepts and that then do harm. Each was once in a page. */
function helmTrap(verb: string, rest: readonly string[], manifests: readonly Manifest[]): string | null {
  const deletesTests = manifests.some((one) =>
    one.metadata.annotations?.['helm.sh/hook-delete-policy']?.includes('hook-succeeded'),
  );
  if (verb === 'test' && rest.includes('--logs') && deletesTests)
    return 'helm test --logs reads the log of a pod that is deleted when it succeeds, and then fails';
  if (verb === 'rollback' && !/^(REVISION|\d+)$/.test(rest[1] ?? ''))
    return 'helm rollback without a revision goes to the last but one, which may have failed';
  if (verb !== 'upgrade' || !rest.includes('charts/org-api')) return null;
  if (rest.includes('--reuse-values') || !rest.includes('--values'))
    return (
      'helm upgrade takes the values of the last version that succeeded, with its old image, unless ' +
      '--values names the file'
    );
  return rest.some((word) => word.startsWith('--set'))
    ? 'helm upgrade forgets a --set at the next upgrade: let it stand in the file of values'
    : null;
}

/** Objects and labels that it names must be those of the release. It waits long enough, and shows no secret. */
function kubectlProblem(command: string, manifests: readonly Manifest[]): string | null {
  if (/ wait /.test(command) && !command.includes(' --timeout='))
    return 'kubectl wait ends after 30 s, unless --timeout says when';
  if (/ exec .* -- .*\$/.test(command))
    return 'the audit log of Kubernetes records the arguments of kubectl exec: give a value by standard input';
  const own = command.replaceAll('$NAME', 'us-org-api').replaceAll('$RELEASE', 'us');
  for (const [, kind = '', name = ''] of own.matchAll(
    /\b(deployment|networkpolicy|servicemonitor)[/ ](us-org-api[\w-]*)/g,
  ))
    if (!manifests.some((one) => one.kind.toLowerCase() === kind && one.metadata.name === name))
      return `the release has no ${kind} ${name}`;
  for (const [, key = '', value = ''] of own.matchAll(/(app\.kubernetes\.io\/\w+)=([\w-]+)/g))
    if (!manifests.some((one) => one.metadata.labels?.[key] === value))
      return `nothing of the release has the label ${key}=${value}`;
  return null;
}
