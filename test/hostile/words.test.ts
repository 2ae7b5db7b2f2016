import { wordAttacks } from "./corpus.ts";
import { testAttacks } from "./test-attacks.ts";

testAttacks(wordAttacks);
