import path from 'node:path';
import { changeTypes } from '#domain/contract/events.ts';
import { regions } from '#domain/contract/regions.ts';
import { printable } from '#runtime/command-line.ts';
import { endpoints } from '../api/endpoints.ts';
import type { StartedRegion } from './region.ts';
import type { SampleOwner } from './sample-access.ts';
import type { SampleProvider } from './sample-provider.ts';
import { findSampleOrganization } from './state.ts';

const clients = path.join(import.meta.dirname, '../clients');

/** Install the packages for partners in the current folder. npm 12 builds no linked folder, so npm packs first. */
export const installLines = [
  `npm install $(npm pack --silent '${clients}/typescript' '${clients}/receiver-typescript')`,
  `python3 -m pip install '${clients}/python' '${clients}/receiver-python'`,
];

/** Returns what `npm start` prints when everything is ready. */
export function formatSummary(started: StartedRegion[], stackFile: string): string {
  return [
    ...started.flatMap(regionLines),
    'Install the clients and receiver kits of this checkout in a project of yours:',
    ...installLines.map((line) => `  ${line}`),
    '',
    `The same as JSON: ${stackFile}`,
    'Ctrl-C stops everything. The next npm start continues with this data.',
    '',
  ].join('\n');
}

function regionLines({ stack, sampleOwner, inbox, provider }: StartedRegion): string[] {
  const { region, api, console, metrics, receiver, temporalUi, temporalNamespace, organizations } = stack;
  const { platformDatabaseUrl } = stack;
  const first = findSampleOrganization(stack);
  const lines = [
    '',
    `${regions[region].name} (${region})`,
    `  API        ${api}`,
    `  Console    ${console}`,
    `  Reference  ${api}/docs`,
    `  OpenAPI    ${api}/v1/openapi.json`,
    `  Receiver   ${receiver}/   (the sample receiver lists incoming events)`,
    ...(inbox === null ? [] : [`  Inbox      ${inbox}   (mails to members arrive here and nowhere else)`]),
    ...(provider === null
      ? []
      : [`  Provider   ${provider.issuer}/   (the sample OpenID provider says how to sign in with it)`]),
    `  Metrics    ${metrics}/metrics`,
    ...(temporalUi === undefined ? [] : [`  Temporal   ${temporalUi}/namespaces/${temporalNamespace}/workflows`]),
    '',
    '  Change the data as the platform does, by the functions of docs/platform.md:',
    `    psql '${platformDatabaseUrl}' -c 'select * from platform.organization'`,
    ...(sampleOwner === null ? [] : ownerLines(sampleOwner)),
    ...(provider === null ? [] : providerLines(provider)),
  ];
  if (first === undefined)
    return [...lines, '  No organization has a sample key yet: import one with --data FILE.', ''];
  lines.push('', `  Organizations and their sample keys (all seven scopes):`);
  for (const { id, name, sampleKey } of organizations)
    lines.push(`    ${id}  ${sampleKey ?? '(no active owner, so no key)'}  ${printable(name)}`);
  lines.push('', `  The nine reads of ${printable(first.name)}:`);
  for (const { resource } of endpoints)
    lines.push(`    curl -H 'Authorization: Bearer ${first.sampleKey}' ${api}/v1/orgs/${first.id}${resource}`);
  lines.push(
    '',
    `  Create a key:   npm run dev:key -- --region ${region} --org ${first.id} --creator ${first.ownerUserId} ` +
      '--scopes org.read,org.clients.read',
    `  Revoke a key:   npm run dev:key -- --region ${region} --revoke KEY`,
    '',
    '  Read the roster with the Python client:',
    `    PYTHONPATH=apps/clients/python ORG_API_BASE_URL=${api} ORG_API_KEY=${first.sampleKey} python3 -c ` +
      `'from org_api import OrgApi; print(OrgApi().get_firm_roster("${first.id}").data["seats"])'`,
    '',
    '  Print each event as it arrives, also without a receiver of yours:',
    `    npm run -s tool -- listen --region ${region}`,
    '  Cause each event by a real change of the data, in another terminal (the receiver above lists it, too):',
    ...changeTypes.map((type) => `    npm run -s tool -- listen --region ${region} --trigger ${type}`),
    '  Start a receiver of yours with a secret, send it an event, and then try what else it will meet:',
    "    npm run -s tool -- listen --secret-file FILE --forward-to URL --exec 'COMMAND' --trigger client.started",
    '    npm run -s tool -- certify URL --secret-file FILE',
    '  Make the receiver fail for half a minute, and watch the retries:',
    `    curl -X POST '${receiver}/fail?for=30s&status=503'`,
    '',
  );
  return lines;
}

/** Returns the lines that explain how to enter the console. */
function ownerLines({ organizationName, email, link }: SampleOwner): string[] {
  const name = printable(organizationName);
  if (link === null) return ['', `  The owner of ${name} signs in to the console as ${printable(email)}.`];
  return [
    '',
    `  Open the console as the owner of ${name} (one-time link; choose a password and a second factor):`,
    `    ${link}`,
  ];
}

/** Returns the lines that explain how to sign in with the sample provider; none when no account is linked. */
function providerLines({ signInUrl, shortName, memberName, organizationName }: SampleProvider): string[] {
  if (memberName === null) return [];
  return [
    '',
    `  Sign in as ${printable(memberName)} of ${printable(organizationName)} with the sample provider, short name ` +
      `${printable(shortName)}:`,
    `    ${signInUrl}`,
  ];
}
