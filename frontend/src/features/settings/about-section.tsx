import type { Schemas } from "@/api/client";
import { useSystem } from "@/api/models";
import { formatBytes } from "@/lib/format";
import { ErrorNote } from "@/ui/error-note";
import { Section } from "./section";

export function AboutSection() {
  const { data: system, error } = useSystem();
  return (
    <Section
      title="About"
      description="Eloquio runs open models on this machine. Nothing you write leaves it."
    >
      {error && <ErrorNote error={error} />}
      {system && (
        <dl className="grid gap-x-6 gap-y-3 text-sm sm:grid-cols-[10rem_1fr]">
          <Fact name="Eloquio" value={system.version} />
          {system.engines.map((build) => (
            <Fact key={build.source} name={engineName(build)} value={buildInWords(build)} />
          ))}
          <Fact name="Processor" value={`${system.cpu.name}, ${system.cpu.threads} threads`} />
          <Fact
            name="Memory"
            value={`${formatBytes(system.memory.available_bytes)} free of ${formatBytes(system.memory.total_bytes)}`}
          />
          {system.devices.map((device) => (
            <Fact key={device.id} name="Device" value={device.name} />
          ))}
        </dl>
      )}
    </Section>
  );
}

type Build = Schemas["EngineBuild"];

const engineName = ({ engine }: Build) => engine.replaceAll("_", "-");

function buildInWords({ version, source, problem }: Build): string {
  return problem ?? `${version ?? "version unknown"} · from ${source}`;
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div className="contents">
      <dt className="text-muted-foreground max-sm:-mb-2">{name}</dt>
      <dd className="[overflow-wrap:anywhere]">{value}</dd>
    </div>
  );
}
