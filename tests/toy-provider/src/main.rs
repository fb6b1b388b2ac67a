//! The program with one cloud more: a line.

fn main() -> std::process::ExitCode {
    let mut providers = capstan::providers();
    providers.push(capstan_provider_kit::Plugin::new(capstan_toy_provider::Toy::default()));
    capstan::run(providers)
}
