import type { Section } from "../section.ts";
import { appendSection } from "./append-section.ts";
import { attachmentsSection } from "./attachments-section.ts";
import { cacheSection } from "./cache-section.ts";
import { checksSection } from "./checks-section.ts";
import { coldSection } from "./cold-section.ts";
import { eraseSection } from "./erase-section.ts";
import { fleetSection } from "./fleet-section.ts";
import { forkSection } from "./fork-section.ts";
import { formatsSection } from "./formats-section.ts";
import { growthSection } from "./growth-section.ts";
import { httpSection } from "./http-section.ts";
import { lifecycleSection } from "./lifecycle-section.ts";
import { listSection } from "./list-section.ts";
import { memorySection } from "./memory-section.ts";
import { openSection } from "./open-section.ts";
import { peersSection } from "./peers-section.ts";
import { runsSection } from "./runs-section.ts";
import { sandboxSection } from "./sandbox-section.ts";
import { scaleSection } from "./scale-section.ts";
import { searchSection } from "./search-section.ts";
import { serverSection } from "./server-section.ts";
import { studioSection } from "./studio-section.ts";
import { treeSection } from "./tree-section.ts";

/** All sections of the benchmark, in the order of the table. */
export const sections: readonly Section[] = [
  appendSection,
  growthSection,
  openSection,
  forkSection,
  listSection,
  searchSection,
  memorySection,
  treeSection,
  runsSection,
  cacheSection,
  lifecycleSection,
  formatsSection,
  attachmentsSection,
  sandboxSection,
  httpSection,
  checksSection,
  studioSection,
  serverSection("postgres"),
  serverSection("redis"),
  fleetSection,
  scaleSection,
  eraseSection,
  coldSection,
  peersSection,
];
