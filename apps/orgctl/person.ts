import type { Noun } from './command.ts';
import { Refused } from './refused.ts';

/** `orgctl person …` */
export const person: Noun = {
  noun: 'person',
  summary: 'people who sign in to the console',
  commands: [
    {
      verb: 'invite',
      summary: 'print a one-time link with which a person enrols (comes with the console)',
      options: {
        org: { value: 'ID', about: 'the organization', required: true },
        email: { value: 'E', about: 'the address the person signs in with', required: true },
      },
      async run() {
        throw new Refused('People cannot be invited yet: enrolment links come with the console.');
      },
    },
  ],
};
