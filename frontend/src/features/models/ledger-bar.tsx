import type { Schemas } from "@/api/client";
import { formatBytes } from "@/lib/format";
import { sharesOf } from "./ledger";
import { SplitBar } from "./split-bar";

/** The machine's memory over all models: who holds it, who was promised it, what is left. */
export function LedgerBar({ status }: { status: Schemas["StatusReply"] }) {
  const { ledger } = status;
  const { models, promised, others, free } = sharesOf(status);
  return (
    <section
      aria-label="Memory of this machine"
      className="space-y-4 rounded-xl border bg-card p-5 shadow-low"
    >
      <SplitBar
        fullBytes={ledger.total}
        parts={[
          { label: "Models", bytes: models, color: "var(--memory-weights)" },
          {
            label: "Promised to models",
            bytes: promised,
            color: "color-mix(in oklab, var(--memory-weights) 45%, transparent)",
          },
          { label: "System and other programs", bytes: others, color: "var(--input)" },
        ]}
      >
        <span>
          <span className="font-semibold tabular-nums">{formatBytes(free)}</span>
          <span className="text-muted-foreground"> free for models</span>
        </span>
        <span className="text-muted-foreground tabular-nums">
          of {formatBytes(ledger.total)}
          {ledger.devices.length > 0 && ", accelerators included"}
        </span>
      </SplitBar>
      {ledger.devices.map((device) => (
        <SplitBar
          key={device.id}
          fullBytes={device.total}
          parts={[
            {
              label: "In use",
              bytes: Math.max(device.total - device.free, 0),
              color: "var(--memory-projector)",
            },
          ]}
        >
          <span className="[overflow-wrap:anywhere]">{device.name}</span>
          <span className="text-muted-foreground tabular-nums">
            {formatBytes(device.free)} free of {formatBytes(device.total)}
          </span>
        </SplitBar>
      ))}
    </section>
  );
}
