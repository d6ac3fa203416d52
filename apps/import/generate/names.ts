import type { Random } from './random.ts';

/** Invented names in many alphabets, which exercise ordering and encoding. */

const listed = (names: string) => names.split(', ') as [string, ...string[]];

const givenNames = listed(
  'Amara, Björn, Chiara, Đorđe, Élise, Femi, Gül, Hana, Íris, Jürgen, Kwame, Łucja, Mónica, Nóra, ' +
    'Øystein, Priya, Quinn, Renée, Siobhán, Thuỳ, Ülle, Věra, Ximena, Zoë',
);
const surnames = listed(
  'Adeyemi, Ångström, Björkman, Castañeda, Dvořák, Ekström, Fournier, Göransson, Hallgrímsson, ' +
    'Iñárritu, Jørgensen, Kovačević, Lindqvist, Małecki, Núñez, O’Sullivan, Pätzold, Quéré, Rønning, ' +
    'Szabó, Tkachenko, Ünal, Võ, Wójcik, 山本, Žižka, de la Peña, McAllister',
);
const practices = listed('Family Law, Mediation, Legal Aid, Médiation familiale, Law Group, Court Services');

export const personName = (random: Random) => `${random.pick(givenNames)} ${random.pick(surnames)}`;
export const familyName = (random: Random) => `${random.pick(surnames)}–${random.pick(surnames)} family`;
export const organizationName = (random: Random) =>
  `${random.pick(surnames)} & ${random.pick(surnames)} ${random.pick(practices)}`;
