import { floodAttacks } from "./corpus.ts";
import { testAttacks } from "./test-attacks.ts";

testAttacks(floodAttacks);
