import { fileURLToPath } from 'node:url';
import type { Cluster } from './cluster.ts';
import { runCommand } from './command.ts';
import type { RegionSecrets } from './installation.ts';
import type { Image, Release } from './release.ts';
import type { RegionServers } from './servers.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Follows NOTES.txt about `helm test`: creates the operator's organization, stores its secrets in a
 * Secret, sets its webhook in the release, and runs the test. Returns the test's output.
 */
export async function testRelease(
  cluster: Cluster,
  options: { release: Release; servers: RegionServers; secrets: RegionSecrets; image: Image; clusterIP: string },
): Promise<string[]> {
  const { release, servers, secrets, image, clusterIP } = options;
  const secretName = `${release.name}-probe`;
  const manifest = await runCommand(
    process.execPath,
    [
      'apps/orgctl/main.ts',
      'probe',
      'create',
      '--region',
      servers.region,
      '--url',
      `http://${clusterIP}:8090/`,
      '--secret-name',
      secretName,
    ],
    {
      cwd: repository,
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: servers.ownerUrl,
        KEY_PEPPERS: secrets.keyPeppers,
        KEY_TAG_SECRETS: secrets.keyTagSecrets,
        WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
        WEBHOOK_ALLOW: clusterIP,
      },
    },
  );
  const secret = JSON.parse(manifest) as { stringData: { webhookId: string } };
  await cluster.apply(release.namespace, [secret]);
  release.set({
    probe: { enabled: true, clusterIP, existingSecret: secretName, webhookId: secret.stringData.webhookId },
  });
  await release.upgrade(image);
  const output = await cluster.helm(['test', release.name, '-n', release.namespace, '--timeout', '150s'], {
    timeoutMs: 200_000,
    withStderr: true, // where Helm writes the logs of hooks
  });
  return output.split('\n').filter((line) => /^(ok {4}|FAILED) /.test(line));
}
