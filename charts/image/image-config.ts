import type { Build } from './build-id.ts';

/** Returns the image's metadata and how it runs: the same as the last stage of the Dockerfile. */
export function imageConfig({ buildId, revision, source }: Pick<Build, 'buildId' | 'revision' | 'source'>) {
  return {
    env: {
      PATH: '/usr/local/bin',
      NODE_ENV: 'production',
      WORKFLOW_BUNDLE: '/app/workflows.bundle.json',
    },
    /** Under `org.opencontainers.image.`. */
    labels: {
      title: 'org-api',
      description: 'Organization Read API and Webhooks',
      licenses: 'Apache-2.0',
      source: source ?? '',
      version: buildId,
      revision,
    },
    workingDirectory: '/app',
    user: '65532:65532',
    entrypoint: ['/usr/local/bin/node'],
    command: ['apps/api/main.ts'],
  };
}
