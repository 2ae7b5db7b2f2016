import { compareStores } from "./compare-stores.ts";

compareStores("sqlite");
