import type { Schemas } from "@/api/client";
import { heldBytes } from "./fit";

export type LedgerShares = {
  /** What the models hold now. */
  models: number;
  promised: number;
  /** The system, other programs, and what is kept for them. */
  others: number;
  free: number;
};

/** Who has how much of the machine's memory; the shares add up to the whole. */
export function sharesOf({
  ledger,
  engines,
}: Pick<Schemas["StatusReply"], "ledger" | "engines">): LedgerShares {
  const held = engines.reduce((sum, engine) => sum + heldBytes(engine), 0);
  const free = Math.min(ledger.free, ledger.total);
  const promised = Math.min(ledger.promised, held, ledger.total - free);
  const models = Math.min(held - promised, ledger.total - free - promised);
  return { models, promised, others: ledger.total - free - promised - models, free };
}
