import { InvalidSettingsError, UsageError } from '#runtime/errors.ts';
import type { Command, Context, Noun } from './command.ts';
import { type CreatedProbe, createProbe } from './create-probe.ts';
import { fields } from './table.ts';

const create: Command = {
  verb: 'create',
  summary: 'create an organization for helm test with one key and one webhook, and print both secrets once',
  options: {
    url: { value: 'U', about: "the URL of the probe's receiver, from NOTES.txt of the chart", required: true },
    renew: {
      value: 'yes',
      about: 'yes: revoke the key and delete the webhook of an earlier probe, and create new ones',
    },
    'secret-name': { value: 'N', about: 'print a Kubernetes Secret of this name, for kubectl apply -f -' },
  },
  async run(options, context) {
    const renew = options.find('renew');
    if (renew !== null && renew !== 'yes') throw new UsageError('--renew must be yes.');
    const secretName = options.find('secret-name');
    const created = await createProbe(
      context.database,
      { url: options.get('url'), renew: renew === 'yes' },
      getSecrets(context),
    );
    if (secretName === null)
      return {
        json: created,
        text: `${fields({ ...created })}\nThe key and the secret are shown only once. Store them in a Secret.`,
      };
    const manifest = secretManifest(secretName, created);
    return { json: manifest, text: JSON.stringify(manifest, null, 2) };
  },
};

/** `orgctl probe …` */
export const probe: Noun = {
  noun: 'probe',
  summary: 'the organization that helm test reads from and delivers to',
  commands: [create],
};

function getSecrets({ config }: Context) {
  const { region, peppers, tagSecrets, sealingKeys, allow } = config;
  const missing = Object.entries({
    KEY_PEPPERS: peppers,
    KEY_TAG_SECRETS: tagSecrets,
    WEBHOOK_SECRET_KEYS: sealingKeys,
  })
    .filter(([, value]) => value === null)
    .map(([name]) => `${name} is missing: set the same value as for the pods of this region`);
  if (peppers === null || tagSecrets === null || sealingKeys === null) throw new InvalidSettingsError(missing);
  return { keys: { region, peppers, tagSecrets }, webhooks: { allow, sealingKeys } };
}

/** Returns a Secret for `kubectl apply`; its keys are those that the chart's test reads. */
function secretManifest(name: string, { organizationId, key, webhookId, webhookSecret }: CreatedProbe) {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels: { 'app.kubernetes.io/part-of': 'org-api' } },
    type: 'Opaque',
    stringData: { organizationId, key, webhookId, webhookSecret },
  };
}
