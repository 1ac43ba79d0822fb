package animalstore

import (
	"slices"
	"strings"
)

// Plan is what a key's owner pays for.
type Plan string

const (
	PlanFree       Plan = "free"
	PlanPro        Plan = "pro"
	PlanBusiness   Plan = "business"
	PlanEnterprise Plan = "enterprise"
)

// Plans are all of them, smallest first.
var Plans = []Plan{PlanFree, PlanPro, PlanBusiness, PlanEnterprise}

// ParsePlan reads one of [Plans], exactly as spelled there.
func ParsePlan(s string) (Plan, bool) {
	p := Plan(s)
	return p, slices.Contains(Plans, p)
}

// Limits are how many requests a key may make.
type Limits struct {
	PerMinute int64 `json:"perMinute"`
	PerDay    int64 `json:"perDay"`
}

// planLimits has no row for enterprise: its limits are agreed key by key.
var planLimits = map[Plan]Limits{
	PlanFree:     {PerMinute: 60, PerDay: 1_000},
	PlanPro:      {PerMinute: 300, PerDay: 10_000},
	PlanBusiness: {PerMinute: 1_000, PerDay: 100_000},
}

// LimitsFor settles the limits of a key on plan p. On enterprise both custom
// limits must be given; on any other plan neither may be.
func (p Plan) LimitsFor(custom Limits) (Limits, error) {
	if p == PlanEnterprise {
		if custom.PerMinute <= 0 || custom.PerDay <= 0 {
			return Limits{}, Errorf(ValidationFailed, "plan enterprise needs its own limits: give both a per-minute and a per-day limit, positive integers")
		}
		return custom, nil
	}
	fixed, ok := planLimits[p]
	if !ok {
		return Limits{}, Errorf(ValidationFailed, "plan must be one of %s", joinPlans())
	}
	if custom != (Limits{}) {
		return Limits{}, Errorf(ValidationFailed, "plan %s has fixed limits (%d a minute, %d a day): only enterprise takes its own", p, fixed.PerMinute, fixed.PerDay)
	}
	return fixed, nil
}

func joinPlans() string {
	names := make([]string, len(Plans))
	for i, p := range Plans {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}
