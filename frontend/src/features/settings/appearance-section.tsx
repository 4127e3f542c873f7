import { Monitor, Moon, Sun } from "lucide-react";
import { RadioGroup } from "radix-ui";
import { type ThemeChoice, useTheme } from "@/lib/theme";
import { Section } from "./section";

const choices = [
  { value: "system", label: "System", icon: Monitor },
  { value: "light", label: "Light", icon: Sun },
  { value: "dark", label: "Dark", icon: Moon },
] as const satisfies readonly { value: ThemeChoice; label: string; icon: unknown }[];

export function AppearanceSection() {
  const { choice, choose } = useTheme();
  return (
    <Section title="Appearance">
      <RadioGroup.Root
        aria-label="Theme"
        value={choice}
        onValueChange={(value) => choose(value as ThemeChoice)}
        className="grid grid-cols-3 gap-2"
      >
        {choices.map(({ value, label, icon: Icon }) => (
          <RadioGroup.Item
            key={value}
            value={value}
            className="flex min-h-11 items-center justify-center gap-2 rounded-md border px-3 text-sm transition-colors hover:bg-secondary data-[state=checked]:border-primary data-[state=checked]:bg-accent data-[state=checked]:font-medium data-[state=checked]:text-accent-foreground"
          >
            <Icon className="size-4" aria-hidden />
            {label}
          </RadioGroup.Item>
        ))}
      </RadioGroup.Root>
    </Section>
  );
}
