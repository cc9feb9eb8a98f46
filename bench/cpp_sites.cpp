// SPDX-License-Identifier: Apache-2.0
/*
 * What a span with two integers costs in C++, beside OpenTelemetry's SDK in the same process:
 *bursts in turn, in CPU time of the thread and beyond an empty loop. Prints the median costs of a
 *span in ns.
 *
 *	cpp_sites dormant|recorded CPU ROUNDS
 *
 * OpenTelemetry has what costs it least: a sampler that drops everything, or a processor that drops
 * each span when it ends. `api` is its API where no SDK was set up.
 */
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/samplers/always_off.h>
#include <opentelemetry/sdk/trace/span_data.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/scope.h>
#include <opentelemetry/trace/tracer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sched.h>
#include <time.h>
#include <vector>

#include <waffle.hpp>
#include <waffle_trace.h>

namespace trace = opentelemetry::trace;
namespace sdk = opentelemetry::sdk::trace;

using Tracer = opentelemetry::nostd::shared_ptr<trace::Tracer>;

constexpr long burst = 10000;

class Drop : public sdk::SpanProcessor
{
      public:
	std::unique_ptr<sdk::Recordable> MakeRecordable() noexcept override
	{
		return std::make_unique<sdk::SpanData>();
	}
	void OnStart(sdk::Recordable &, const trace::SpanContext &) noexcept override
	{
	}
	void OnEnd(std::unique_ptr<sdk::Recordable> &&) noexcept override
	{
	}
	bool ForceFlush(std::chrono::microseconds) noexcept override
	{
		return true;
	}
	bool Shutdown(std::chrono::microseconds) noexcept override
	{
		return true;
	}
};

static double cpu_now()
{
	timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

static __attribute__((noinline)) void burst_empty(const Tracer &)
{
	for (long i = 0; i < burst; i++)
		__asm__ __volatile__("" ::: "memory");
}

static __attribute__((noinline)) void burst_waffle(const Tracer &)
{
	for (long i = 0; i < burst; i++) {
		WAFFLE_SPAN("span", "turn", i, "turns", burst);
		__asm__ __volatile__("" ::: "memory");
	}
}

static __attribute__((noinline)) void burst_other(const Tracer &tracer)
{
	for (long i = 0; i < burst; i++) {
		auto span = tracer->StartSpan("span", {{"turn", i}, {"turns", burst}});
		trace::Scope scope(span);

		__asm__ __volatile__("" ::: "memory");
	}
}

struct Kind {
	const char *name;
	void (*run)(const Tracer &tracer);
	Tracer tracer;
	std::vector<double> costs;
};

static double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

int main(int argc, char **argv)
{
	bool recorded = argc == 4 && !std::strcmp(argv[1], "recorded");
	int rounds = argc == 4 ? std::atoi(argv[3]) : 0;
	cpu_set_t cpus;

	if (rounds <= 0) {
		std::fprintf(stderr, "usage: cpp_sites dormant|recorded CPU ROUNDS\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(std::atoi(argv[2]), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	auto provider = recorded ? sdk::TracerProviderFactory::Create(std::make_unique<Drop>())
				 : sdk::TracerProviderFactory::Create(
					   std::make_unique<Drop>(),
					   opentelemetry::sdk::resource::Resource::Create({}),
					   std::make_unique<sdk::AlwaysOffSampler>());
	Tracer api = trace::Provider::GetTracerProvider()->GetTracer("bench");
	std::vector<Kind> kinds = {{"empty", burst_empty, api, {}},
				   {"waffle", burst_waffle, api, {}},
				   {"sdk", burst_other, provider->GetTracer("bench"), {}},
				   {"api", burst_other, api, {}}};
	for (int i = -10; i < rounds; i++) {
		for (auto &kind : kinds) {
			double before;

			waffle_trace_flush();
			before = cpu_now();
			kind.run(kind.tracer);
			if (i >= 0)
				kind.costs.push_back((cpu_now() - before) / burst);
		}
	}
	double empty = median(kinds[0].costs);
	for (const auto &kind : kinds)
		std::printf("%s %.3f\n", kind.name,
			    median(kind.costs) - (&kind == &kinds[0] ? 0 : empty));
	return 0;
}
