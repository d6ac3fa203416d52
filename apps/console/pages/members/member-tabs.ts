import { type Html, nothing } from '#runtime/pages/html.ts';
import { tabs } from '../../components/tabs.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Renders the tabs of members and roles, for members who may see both. */
export const memberTabs = (visit: MemberVisit, here: 'members' | 'roles'): Html =>
  visit.may('org.roles.read') && visit.may('org.members.read')
    ? tabs('Members and roles', [
        { label: 'Members', href: visit.at('/members'), isHere: here === 'members' },
        { label: 'Roles', href: visit.at('/members/roles'), isHere: here === 'roles' },
      ])
    : nothing;
