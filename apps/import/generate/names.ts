import type { Dice } from './dice.ts';

/** Invented names in many alphabets, which exercise ordering and encoding. */

const givenNames = [
  ...([
    'Amara',
    'Björn',
    'Chiara',
    'Đorđe',
    'Élise',
    'Femi',
    'Gül',
    'Hana',
    'Íris',
    'Jürgen',
    'Kwame',
    'Łucja',
  ] as const),
  ...([
    'Mónica',
    'Nóra',
    'Øystein',
    'Priya',
    'Quinn',
    'Renée',
    'Siobhán',
    'Thuỳ',
    'Ülle',
    'Věra',
    'Ximena',
    'Zoë',
  ] as const),
] as const;

const surnames = [
  ...([
    'Adeyemi',
    'Ångström',
    'Björkman',
    'Castañeda',
    'Dvořák',
    'Ekström',
    'Fournier',
    'Göransson',
    'Hallgrímsson',
  ] as const),
  ...([
    'Iñárritu',
    'Jørgensen',
    'Kovačević',
    'Lindqvist',
    'Małecki',
    'Núñez',
    'O’Sullivan',
    'Pätzold',
    'Quéré',
  ] as const),
  ...(['Rønning', 'Szabó', 'Tkachenko', 'Ünal', 'Võ', 'Wójcik', '山本', 'Žižka', 'de la Peña', 'McAllister'] as const),
] as const;

const practices = [
  'Family Law',
  'Mediation',
  'Legal Aid',
  'Médiation familiale',
  'Law Group',
  'Court Services',
] as const;

type List = readonly [string, ...string[]];

export const personName = (dice: Dice) => `${dice.pick(givenNames as List)} ${dice.pick(surnames as List)}`;
export const familyName = (dice: Dice) => `${dice.pick(surnames as List)}–${dice.pick(surnames as List)} family`;
export const organizationName = (dice: Dice) =>
  `${dice.pick(surnames as List)} & ${dice.pick(surnames as List)} ${dice.pick(practices as List)}`;
