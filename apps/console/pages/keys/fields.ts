import { allowedAddressesPerKey, keyDescriptionMaxCharacters, keyLabelMaxCharacters } from '#domain/contract/limits.ts';
import { findAddressProblem } from '#domain/keys/fields.ts';
import type { KeyCaller } from '#domain/keys/list.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { linesField, textField } from '../../components/form.ts';
import { type FormState, line, listOfLines, optionalLine } from '../../web/form.ts';

/** What a person may change of a key later. The domain validates each field again. */
export const keyTextFields = {
  name: line('a name', keyLabelMaxCharacters),
  description: optionalLine(keyDescriptionMaxCharacters),
  allowedAddresses: listOfLines(2_000).superRefine((addresses, context) => {
    const problem = findAddressProblem(addresses);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }),
};

/** Renders the fields of a key's name and description. */
export const renderNameFields = (state: FormState): Html => html`
  ${textField(state, {
    name: 'name',
    label: 'Name',
    maxLength: keyLabelMaxCharacters,
    hint: 'The system that uses the key, for example “Monthly report”.',
  })}
  ${textField(state, {
    name: 'description',
    label: 'Description (optional)',
    required: false,
    maxLength: keyDescriptionMaxCharacters,
    hint: 'Where the key is stored, or whom to ask about it.',
  })}`;

/** Renders the list of allowed addresses. `callers`: those of the latest calls, to compare. */
export const renderAllowedAddresses = (state: FormState, callers: readonly KeyCaller[] = []): Html =>
  linesField(state, {
    name: 'allowedAddresses',
    label: 'Allowed IP addresses (optional)',
    rows: 3,
    maxLength: 2_000,
    hint: html`One address or range on each line, such as 203.0.113.0/24, at most ${allowedAddressesPerKey}. Calls from
      other addresses get 403. Empty: the key works from any address.${recentCallers(callers)}`,
  });

function recentCallers(callers: readonly KeyCaller[]): Html {
  const known = callers.flatMap(({ address }) => (address === null ? [] : [address]));
  return known.length === 0 ? html`` : html` Recent calls came from ${known.join(', ')}.`;
}
